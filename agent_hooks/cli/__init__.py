"""The command `agent-hooks`: one file per command, imported when it is used."""
