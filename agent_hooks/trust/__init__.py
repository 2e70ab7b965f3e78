"""Trust: a person approves the files of a project's `.agent` directories by their contents; until then they are data."""
