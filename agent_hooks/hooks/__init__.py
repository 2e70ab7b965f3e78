"""Find hook files, import them, and register their handlers."""
