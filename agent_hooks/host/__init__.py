"""A small real coding agent: sessions, turns, tools, models."""

CLIENT = "agent-hooks"
"""The name of the host in records and checkpoints, beside those of other agents."""
