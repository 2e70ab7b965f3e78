"""Kills in the middle of everything that saves: `python -m checks.crash`."""
