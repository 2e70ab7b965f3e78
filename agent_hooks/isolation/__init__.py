"""Hooks in a process of their own, seen from the agent: the process, the protocol, and the stand-ins of its handlers."""
