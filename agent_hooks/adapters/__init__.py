"""Adapters: the hooks of this package as the callbacks of another library.

Each adapter is a module with the library's name.  It imports the library when it is called, and uses the bridge to the
agent that the library runs, so it knows no event and no field itself.
"""
