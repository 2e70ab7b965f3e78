"""Fuzzing of everything that reads text from outside: `python -m checks.fuzz`."""
