"""The person's answers that count for later calls: those of a session in memory, and those for good in a file.

project     the project that an answer belongs to
kept        one answer for good, with the digest that finds an edit by hand
store       the file of these answers
memory      the answers of a runner: asks the store, and keeps the answers of its sessions
"""

FILE = "remembered.json"
"""The file of the answers for good, below the agent home."""
LOCK = "remembered.lock"
"""The file that a process locks while it changes the answers, below the agent home."""
EXCEPTIONS = "agent-hooks guard exceptions"
"""The command that lists and ends the answers."""
