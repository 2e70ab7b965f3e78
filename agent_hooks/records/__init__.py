"""The decisions, written down: a line before a call and a line after it, in files of this person only."""
