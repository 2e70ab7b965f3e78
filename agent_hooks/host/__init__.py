"""A small real coding agent: sessions, turns, tools, models."""
