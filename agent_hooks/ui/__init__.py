"""The UIs, by which a handler asks the person; one module for each.

A UI of your own returns an `Answer` to each `Question` about a tool call, or has no `ask` and confirms.
"""

from agent_hooks.ui.base import Answer, Choice, Question

__all__ = ["Answer", "Choice", "Question"]
