"""The resident process: one per project and user, so that hooks keep their state between another agent's events.

`client` is what the other agent runs, `stub` writes it into a file, `sessions` holds the hooks, `server` listens.
Above: cli.  Below: bridging, runner.
"""
