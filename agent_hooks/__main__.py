"""`python -m agent_hooks` is the command `agent-hooks`."""

from agent_hooks.cli.main import main

if __name__ == "__main__":
    main()
