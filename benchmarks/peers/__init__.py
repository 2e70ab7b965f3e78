"""Other hook systems, each measured in an environment of its own (`make bench-peers`)."""
