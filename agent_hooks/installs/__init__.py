"""The settings of other agents: where they lie, and how entries of ours come in and out."""
