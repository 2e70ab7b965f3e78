"""The links of an agent that report the same call: a mod in its process, and a settings hook below it.

Each link gets a verdict, and the hooks judge a call once.  A report is of the same call if another link has reported it
with the same id, tool and input.  A report with the same id from the same link is of another call, because some models
repeat ids.  A mod may rewrite a call that an earlier link has reported.  Then the digest differs, and the hooks judge
again.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import Call, CallAsked, CallEnded
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.server.memory import key_of, short_id

FIELD = "agent_hooks_link"
"""The field of a payload that names the link; a settings hook has no such field."""
# The links of the mod: see `plugins/claude-code`.
_MOD = ("call", "check")
# The number of calls that are remembered.
_MOST = 256


class _Reported(Struct):
    """A call that was answered: the links that have reported it, and the verdict for each form of it, by digest."""

    links: set[str]
    verdicts: dict[str, Verdict]


class Links:
    """The reports of one session: `known(call)` before the hooks, and `answered(call, verdict)` after them."""

    def __init__(self) -> None:
        self._reported: dict[tuple[type[Call], str, str], _Reported] = {}

    def known(self, call: CallAsked | CallEnded) -> Verdict | None:
        """Return the verdict on a call that another link has reported, `None` for a new call."""
        found, link = self._reported.get(_identity(call)), _link(call)
        verdict = None if found is None or link in found.links else found.verdicts.get(_key(call))
        if found is not None and verdict is not None:
            found.links.add(link)
        return verdict

    def answered(self, call: CallAsked | CallEnded, verdict: Verdict) -> None:
        """Remember the verdict on a new call, for the call as it was reported and as the verdict leaves it.

        The user and the model have had its texts, except from a mod, which passes none on: the settings hook does.
        """
        if _link(call) not in _MOD:
            verdict = replace(verdict, messages=(), context=())
        # Another link may see the call before the change, or after it.
        verdicts = {_key(call): verdict}
        if isinstance(call, CallAsked) and verdict.input is not None:
            verdicts[_key(replace(call, input=verdict.input))] = replace(verdict, input=None)
        if isinstance(call, CallEnded) and verdict.output is not None:
            verdicts[_key(replace(call, output=verdict.output))] = replace(verdict, output=None)
        self._reported.pop(_identity(call), None)
        self._reported[_identity(call)] = _Reported({_link(call)}, verdicts)
        while len(self._reported) > _MOST:
            del self._reported[next(iter(self._reported))]


def _identity(call: Call) -> tuple[type[Call], str, str]:
    return type(call), call.agent_id, short_id(call.tool_call_id)


def _link(call: Call) -> str:
    return str(call.native.get(FIELD, ""))


def _key(call: CallAsked | CallEnded) -> str:
    content = {} if isinstance(call, CallAsked) else {"output": repr(call.output)}
    return key_of(call.native_name, {"input": call.input, **content})
