"""How a hook file comes in: it is found, imported, registered."""
