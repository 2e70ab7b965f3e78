"""Checks of the page of `look`: the types of its modules, and its tests in a browser."""
