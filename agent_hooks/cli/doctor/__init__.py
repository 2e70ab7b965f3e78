"""The checks of `agent-hooks doctor`."""
