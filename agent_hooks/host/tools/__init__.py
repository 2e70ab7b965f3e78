"""The built-in tools; one module per tool."""
