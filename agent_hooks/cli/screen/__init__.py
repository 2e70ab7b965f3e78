"""Output for a person at a terminal: lines, tables, the prompt line."""
