"""Half of a surrogate pair in an input, which JSON can hold and no file name can: the guards judge it, and none fails."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_hooks import HookRunner, ToolOutput
from agent_hooks.guards import builtin_guards
from agent_hooks.pipeline.machine import RealMachine
from agent_hooks.records import Records
from agent_hooks.redaction import Redactor
from agent_hooks.testing import StandInTool, call_tool
from support import examples

HALVES = ("\ud800", "\udbff", "\udfff", "\udc00")
_half = st.sampled_from(HALVES)
_words = st.lists(
    st.sampled_from(
        [
            *(
                "rm -rf ",
                "cat ",
                "cd ",
                "git apply ",
                "tar xf ",
                "find . -name ",
                "python3 -c ",
                "sed -i s/a/b/ ",
                "> ",
            ),
            *("a", "/", "..", "~", ".agent/", "hooks/x.py", ".env", "'", '"', ";", "|", "$", "*", "\n", " "),
        ]
    )
    | _half,
    max_size=8,
).map("".join)
_texts = st.builds(lambda one, half, other: f"{one}{half}{other}", _words, _half, _words)
_patches = _texts.map(lambda name: f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch")
_calls = st.one_of(
    st.tuples(st.just("bash"), st.fixed_dictionaries({"command": _texts}, optional={"cwd": _texts, "workdir": _texts})),
    st.tuples(
        st.sampled_from(["read", "write", "edit", "ls", "grep", "find"]), st.fixed_dictionaries({"path": _texts})
    ),
    st.tuples(st.just("grep"), st.fixed_dictionaries({"pattern": _texts, "glob": _texts})),
    st.tuples(st.just("apply_patch"), st.fixed_dictionaries({"input": _patches | _texts})),
    st.tuples(st.just("mcp__x__do"), st.dictionaries(st.sampled_from(["path", "file", "cmd", "uri"]) | _texts, _texts)),
    st.tuples(st.just("write"), st.fixed_dictionaries({"path": st.just("a"), "content": _texts})),
    st.tuples(_texts, st.dictionaries(_texts, _texts, max_size=2)),
)


@given(_calls, st.sampled_from(["", *HALVES]))
@examples(150)
@example(("bash", {"command": "rm -rf \ud800"}), "")
@example(("bash", {"command": "cat \ud800/../.agent/hooks/a.py"}), "")
@example(("bash", {"command": "tar xf \ud800"}), "")
@example(("bash", {"command": "git apply \ud800"}), "")
@example(("write", {"path": "\ud800"}), "")
@example(("write", {"path": "a"}), "\ud800")
def test_no_guard_fails_at_half_a_character(call: tuple[str, dict[str, Any]], place: str) -> None:
    """Neither do records, redaction and the result; `place` is a part of the working directory and of all ids."""
    name, given_input = call
    with TemporaryDirectory() as directory:
        errors: list[str] = []
        runner = HookRunner(
            [],
            cwd=os.path.join(directory, place),
            session_id=f"s{place}",
            guards=builtin_guards(protected=[f"{directory}/.agent"]),
            records=Records(home=directory),
            redactor=Redactor(),
        )
        runner.on_error(lambda error: errors.append(str(error)))
        tool = StandInTool(name, ToolOutput(f"{place}done"))
        output = anyio.run(lambda: call_tool(runner, name, given_input, tool=tool, tool_call_id=f"c{place}"))
        runner.end_records()
        assert not errors
        assert "failed" not in output.text
        assert "surrogates not allowed" not in output.text


@pytest.mark.anyio
@pytest.mark.parametrize("half", HALVES)
async def test_half_a_character_hides_no_path(half: str, tmp_path: Path) -> None:
    """An agent that runs on Node.js opens the file with U+FFFD in its place, so the guards follow that one's link."""
    hooks = tmp_path / ".agent" / "hooks"
    hooks.mkdir(parents=True)
    (tmp_path / "x\ufffd").symlink_to(hooks)
    runner = HookRunner([], cwd=str(tmp_path), guards=builtin_guards(protected=[str(tmp_path / ".agent")]))
    for tool, arguments in (
        ("write", {"path": f"x{half}/evil.py", "content": ""}),
        ("bash", {"command": f"echo > x{half}/evil.py"}),
        ("bash", {"command": f"rm {half}; rm -rf /"}),
    ):
        output = await call_tool(runner, tool, arguments)
        assert output.is_error
        assert "failed" not in output.text
    assert RealMachine(str(tmp_path), str(tmp_path)).real(str(tmp_path / f"x{half}" / "a")) == str(hooks / "a")
