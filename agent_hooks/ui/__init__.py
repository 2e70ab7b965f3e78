"""The UIs, by which a handler asks the person; one module for each."""
