"""How a handler asks the person; one module per way."""
