"""Other hook systems, each measured in an environment of its own (`python -m checks.peers`)."""
