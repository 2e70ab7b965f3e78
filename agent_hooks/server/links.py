"""The links of an agent that report the same call: a mod in its process, a settings hook below it, and
another judge, see `linking`.

Each link gets a verdict, and the hooks judge a call once.  A report is of the same call if another link has reported it
with the same id, tool and input.  A report with the same id from the same link is of another call, because some models
repeat ids.  For the same reason, each prompt begins with new `Links`.  A mod may rewrite a call that an earlier link has
reported.  Then the digest differs, and the hooks judge again.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import Call, CallAsked, CallEnded
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.server.memory import key_of, short_id

Silent = Literal["mod", "settings", None]
"""A link that does not report: the mod, or the settings hook below it."""
FIELD = "agent_hooks_link"
"""The field of a payload that names the link; a settings hook has no such field."""
_MOD, _SETTINGS = frozenset({"call", "check"}), ""
"""The links of a mod, above all others and right above the settings hooks, and a settings hook."""
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
        self._has_mod = False

    def start(self) -> None:
        """Begin a session: its process may have a mod or not."""
        self._has_mod = False

    def silent(self, call: CallEnded) -> Silent:
        """Return the link that has not reported a call that is over, although the other one has."""
        found, link = self._reported.get(_identity(call, CallAsked)), _link(call)
        if found is None:
            return None
        if link in _MOD:
            return None if _SETTINGS in found.links else "settings"
        return "mod" if link == _SETTINGS and self._has_mod and not found.links & _MOD else None

    def known(self, call: CallAsked | CallEnded) -> Verdict | None:
        """Return the verdict on a call that another link has reported, `None` for a new call."""
        found, link = self._reported.get(_identity(call)), _link(call)
        verdict = None if found is None or link in found.links else found.verdicts.get(_key(call))
        self._has_mod |= link in _MOD
        if found is not None and verdict is not None:
            found.links.add(link)
        return verdict

    def answered(self, call: CallAsked | CallEnded, verdict: Verdict) -> None:
        """Remember the verdict on a new call, for the call as it was reported and as the verdict leaves it.

        The user and the model have had its texts.
        """
        # Another link may see the call before the change, or after it.
        verdict = replace(verdict, messages=(), context=())
        verdicts = {_key(call): verdict}
        if isinstance(call, CallAsked) and verdict.input is not None:
            verdicts[_key(replace(call, input=verdict.input))] = replace(verdict, input=None)
        if isinstance(call, CallEnded) and verdict.output is not None:
            verdicts[_key(replace(call, output=verdict.output))] = replace(verdict, output=None)
        found, link = self._reported.pop(_identity(call), None), _link(call)
        if found is None or link in found.links:
            found = _Reported(set(), {})
        # A link that has not reported the call yet knows another form of it.  The other forms stay.
        found.links.add(link)
        found.verdicts.update(verdicts)
        self._reported[_identity(call)] = found
        while len(self._reported) > _MOST:
            del self._reported[next(iter(self._reported))]


def _identity(call: Call, kind: type[Call] | None = None) -> tuple[type[Call], str, str]:
    return kind or type(call), call.agent_id, short_id(call.tool_call_id)


def _link(call: Call) -> str:
    return str(call.native.get(FIELD, ""))


def _key(call: CallAsked | CallEnded) -> str:
    content = {} if isinstance(call, CallAsked) else {"output": repr(call.output)}
    return key_of(call.native_name, {"input": call.input, **content})
