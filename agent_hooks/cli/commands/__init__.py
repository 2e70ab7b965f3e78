"""One module a command; the table of commands is in `cli.main`."""
