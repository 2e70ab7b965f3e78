"""The resident process: one for each project and user, so that hooks keep their state between another agent's events.

The other agent runs `client`, which `stub` writes into a file.  `server` listens, `lines` reads and writes, `events` has
the protocol and answers an event, and `sessions` holds the hooks.
"""
