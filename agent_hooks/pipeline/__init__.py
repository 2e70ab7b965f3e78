"""The order of one tool call, and its steps."""
