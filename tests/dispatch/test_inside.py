"""The process of an isolated hook refuses calls that would reach nothing of the agent there."""

from __future__ import annotations

import pytest

from agent_hooks import HookUsageError, get_interceptors, initialize_interceptors
from agent_hooks.dispatch import inside


def test_a_call_is_refused_in_the_process_of_a_hook_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text names the call and the hook."""
    monkeypatch.setattr(inside, "_hook", None)
    inside.refuse_inside("get_interceptors()")
    inside.enter("/h/hook.py")
    with pytest.raises(HookUsageError, match=r"get_interceptors\(\) cannot be used here: /h/hook.py runs in a process"):
        inside.refuse_inside("get_interceptors()")
    for function in (get_interceptors, initialize_interceptors):
        with pytest.raises(HookUsageError, match=rf"{function.__name__}\(\) cannot be used here"):
            function()
