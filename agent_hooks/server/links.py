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
# The number of calls that are remembered.
_MOST = 256


class _Reported(Struct):
    """A report that was answered: the digests that count as the same, the links that have reported it, the verdict."""

    keys: frozenset[str]
    links: set[str]
    verdict: Verdict


class Links:
    """The reports of one session: `known(call)` before the hooks, and `answered(call, verdict)` after them."""

    def __init__(self) -> None:
        self._reported: dict[tuple[type[Call], str, str], _Reported] = {}

    def known(self, call: CallAsked | CallEnded) -> Verdict | None:
        """Return the verdict on a call that another link has reported, `None` for a new call.

        The user and the model have had its texts.
        """
        found, link = self._reported.get(_identity(call)), _link(call)
        if found is None or link in found.links or _key(call) not in found.keys:
            return None
        found.links.add(link)
        is_rewritten = found.verdict.input is not None and found.verdict.input == call.input
        verdict = replace(found.verdict, messages=(), context=(), output=None)
        return replace(verdict, input=None) if is_rewritten else verdict

    def answered(self, call: CallAsked | CallEnded, verdict: Verdict) -> None:
        """Remember the verdict on a new call."""
        final = [call]
        if isinstance(call, CallAsked) and verdict.input is not None:
            final.append(replace(call, input=verdict.input))
        if isinstance(call, CallEnded) and verdict.output is not None:
            final.append(replace(call, output=verdict.output))
        self._reported.pop(_identity(call), None)
        self._reported[_identity(call)] = _Reported(frozenset(map(_key, final)), {_link(call)}, verdict)
        while len(self._reported) > _MOST:
            del self._reported[next(iter(self._reported))]


def _identity(call: Call) -> tuple[type[Call], str, str]:
    return type(call), call.agent_id, short_id(call.tool_call_id)


def _link(call: Call) -> str:
    return str(call.native.get(FIELD, ""))


def _key(call: CallAsked | CallEnded) -> str:
    content = {} if isinstance(call, CallAsked) else {"output": repr(call.output)}
    return key_of(call.native_name, {"input": call.input, **content})
