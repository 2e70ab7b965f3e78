"""The long runs: whether memory, descriptors, threads and modules stay flat.

`calls` makes tool calls of an embedding program, and `sessions` opens sessions of a resident server.
"""
