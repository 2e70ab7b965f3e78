"""Transformers: rewrites of calls, filters of results, and their configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import Block, HookError, Tool, ToolCall, ToolOutput, wrap_tool
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.host.tools import builtin_tools
from agent_hooks.transformers import TRANSFORMERS, add_default_excludes, builtin_transformer, exclude_directories
from agent_hooks.transformers.base import ConfiguredTransformer
from agent_hooks.transformers.command_intercept import Transformers, load_transformers
from agent_hooks.transformers.config import parse
from agent_hooks.transformers.default_args import transform as default_args
from support import PATIENCE, EchoTool, hook_on, runner_of


def configure(directory: Path, text: str, **own: str) -> Path:
    """Write the `command_intercept.yaml` of a home or a project, and transformers beside it."""
    path = directory / ".agent" / "command_intercept.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(dedent(text))
    for name, source in own.items():
        file = path.parent / "transformers" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(dedent(source))
    return path


def loaded(project: Path, home: Path, text: str, **own: str) -> Transformers:
    """Return the transformers that the project's file configures."""
    configure(project, text, **own)
    return load_transformers(cwd=project, home=home)


def around(tool: Tool, transformers: Transformers, *hooks: LoadedHook) -> tuple[Tool, list[HookError]]:
    """Return the tool with these transformers and hooks around it, and the list of reported failures."""
    runner, errors = runner_of(*hooks, transformers=transformers.configured)
    return wrap_tool(tool, runner), errors


def host_tool(name: str, project: Path) -> Tool:
    """Return a built-in tool that works in the project."""
    return next(tool for tool in builtin_tools(cwd=str(project)) if tool.name == name)


def plant(project: Path) -> None:
    """Put files into a project, some of them in directories to exclude."""
    for name in ("src/a.py", "src/b.min.js", "node_modules/x/c.py", "src/.venv/lib/d.py", "x.egg-info/e.py"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("needle\n")


EXCLUDE = """
    version: 1
    tools:
      {tool}:
        transformers:
          - name: exclude_directories
            config: {{patterns: [.venv, node_modules/, "*.egg-info"]}}
"""


# ---- nothing to do


@pytest.mark.parametrize(
    "text",
    [
        None,
        "version: 1\n",
        "version: 1\nenabled: false\ntools: {bash: {transformers: [{name: no_such}]}}",
        "version: 1\ntools: {bash: {enabled: false, transformers: [{name: default_args, config: {set: {a: 1}}}]}}",
        "version: 1\ntools: {no_tool: {transformers: [{name: default_args, config: {set: {a: 1}}}]}}",
        "version: 1\ntools: {bash: {transformers: [{name: exclude_directories}]}}",
        "version: 1\ntools: {bash: }",
        "version: 1\ntools: {bash: {transformers: []}}",
    ],
)
async def test_without_a_file_switched_off_or_not_listed_the_input_stays(
    home: Path, project: Path, text: str | None
) -> None:
    """The tool gets the input of the call, and its result has no note."""
    if text is not None:
        configure(project, text)
    bare = EchoTool()
    tool, errors = around(bare, load_transformers(cwd=project, home=home))
    output = await tool.execute("1", {"command": "ls"})
    assert bare.inputs == [{"command": "ls"}]
    assert output == ToolOutput("ran ls", {"command": "ls"})
    assert errors == []


async def test_both_files_apply_the_agent_homes_first(home: Path, project: Path) -> None:
    """Each transformer gets the input as the one before it returned it."""
    text = (
        "version: 1\ntools: {{bash: {{transformers: [{{name: default_args, config: {{append: {{command: {}}}}}}}]}}}}"
    )
    configure(home, text.format("' one'"))
    configure(project, text.format("' two'"))
    bare = EchoTool()
    tool, _ = around(bare, load_transformers(cwd=project, home=home))
    output = await tool.execute("1", {"command": "echo"})
    assert bare.inputs == [{"command": "echo one two"}]
    assert output.text.splitlines() == [
        "ran echo one two",
        "[default_args changed this call of bash: command='echo one']",
        "[default_args changed this call of bash: command='echo one two']",
    ]


@pytest.mark.parametrize("off", ["enabled: false", "tools: {bash: {enabled: false}}"])
def test_either_file_can_switch_off_what_it_names(home: Path, project: Path, off: str) -> None:
    """A file can switch off all transformers, or those of one tool."""
    configure(home, "version: 1\ntools: {bash: {auto_allow: true, transformers: [{name: default_args}]}}")
    configure(project, f"version: 1\n{off}")
    assert load_transformers(cwd=project, home=home) == Transformers()


def test_what_a_bridge_may_allow_is_kept_the_projects_word_counts(home: Path, project: Path) -> None:
    """Only a plain `true` in a section without mistakes counts, and the project's file wins."""
    configure(home, "version: 1\ntools: {bash: {auto_allow: true}, ls: {auto_allow: true}, find: {}}")
    configure(project, "version: 1\ntools: {ls: {auto_allow: false}, grep: {auto_allow: true, zzz: 1}}")
    assert load_transformers(cwd=project, home=home).auto_allow == {"bash"}


# ---- directories that are left out


@pytest.mark.parametrize(("name", "left_out"), [("find", 4), ("grep", 4)])
async def test_the_hosts_own_tools_leave_directories_out(home: Path, project: Path, name: str, left_out: int) -> None:
    """Results hold nothing from them at any depth; a line has the number of files, another the tool and directories."""
    plant(project)
    (project / "node_modules" / "x" / "more.py").write_text("needle\n")
    tool, _ = around(host_tool(name, project), loaded(project, home, EXCLUDE.format(tool=name)))
    output = await tool.execute("1", {"pattern": "*.py" if name == "find" else "needle"})
    lines = output.text.splitlines()
    assert lines[0].startswith("src/a.py")
    assert lines[-2] == f"[{left_out} files left out by exclude]"
    assert lines[-1] == (
        f"[exclude_directories changed this call of {name}: exclude=.venv/, node_modules/, *.egg-info/]"
    )
    assert not any(word in line for line in lines[:-1] for word in ("node_modules", ".venv", "egg-info"))


async def test_of_a_tool_without_exclusion_the_output_is_filtered(home: Path, project: Path) -> None:
    """Glob of another agent lists absolute paths; a line has the number of lines removed."""

    async def body(tool_input: dict[str, Any]) -> ToolOutput:
        return ToolOutput(f"{project}/src/a.py\n{project}/node_modules/x/c.py\n{project}/src/.venv/lib/d.py\n")

    tool, _ = around(EchoTool("Glob", body), loaded(project, home, EXCLUDE.format(tool="Glob")))
    output = await tool.execute("1", {"command": "**/*.py"})
    assert output.text.splitlines() == [
        f"{project}/src/a.py",
        "[exclude_directories took 2 lines out of this result of Glob: .venv, node_modules/, *.egg-info]",
    ]


@pytest.mark.parametrize(
    ("name", "tool_input"),
    [
        ("ls", {"path": "."}),
        ("ls", {"path": "node_modules/x"}),
        ("bash", {"command": "find . -type f"}),
        ("bash", {"command": "grep -rn needle ."}),
        ("bash", {"command": "ls -la"}),
        ("bash", {"command": "ls -R"}),
        ("bash", {"command": "du -a"}),
    ],
)
async def test_ls_and_bash_leave_directories_out_of_what_they_list(
    home: Path, project: Path, name: str, tool_input: dict[str, Any]
) -> None:
    """The lines are found in each format that these tools print."""
    plant(project)
    tool, _ = around(host_tool(name, project), loaded(project, home, EXCLUDE.format(tool=name)))
    output = await tool.execute("1", tool_input)
    *lines, note = output.text.splitlines()
    assert note.startswith("[exclude_directories took ")
    assert not any(word in line for line in lines for word in ("node_modules", ".venv", "c.py", "d.py", "egg-info"))
    assert tool_input.get("path") == "node_modules/x" or any("src" in line for line in lines)


@pytest.mark.parametrize("path", ["src/.venv", "src/.venv/lib/d.py", "link"])
async def test_an_excluded_directory_that_is_asked_for_stays_excluded(home: Path, project: Path, path: str) -> None:
    """The call may name it, a file in it, or a symlink to it."""
    plant(project)
    (project / "link").symlink_to("src/.venv")
    tool, _ = around(host_tool("grep", project), loaded(project, home, EXCLUDE.format(tool="grep")))
    output = await tool.execute("1", {"pattern": "needle", "path": path})
    assert output.text.splitlines()[:2] == ["no matches", "[1 file left out by exclude]"]


@pytest.mark.parametrize(
    "line",
    [
        "cp: cannot stat 'node_modules/x': No such file",
        '  File "/usr/lib/node_modules.py", line 3',
        "added 12 packages to ./node_modules/x",
        "src/node_modules.py:1: x",
        "build: ok",
        "node_modules is large",
        "",
    ],
)
def test_a_line_that_only_mentions_a_directory_stays(line: str) -> None:
    """A line comes from a path only when it begins with the path."""
    content = ToolOutput(f"one\n{line}\nthree").content
    kept = exclude_directories.filter_output({}, content, {"patterns": ["node_modules", "build"]})
    assert kept == content


def test_what_lies_above_the_project_never_counts() -> None:
    """A project below /home/me/build keeps its files when `build` is excluded."""
    content = ToolOutput("/home/me/build/p/a.py\n/home/me/build/p/build/b.py\n./build/c.py").content
    config = {"patterns": ["build"], "root": "/home/me/build/p"}
    kept = exclude_directories.filter_output({"path": "/home/me/build/p"}, content, config)
    assert ToolOutput(kept).text == "/home/me/build/p/a.py"


@given(st.text(), st.lists(st.text(max_size=8), max_size=3))
def test_a_filter_only_takes_lines_out(text: str, patterns: list[str]) -> None:
    """The other lines keep their order, and a second time removes nothing."""
    content = ToolOutput(text).content
    kept = exclude_directories.filter_output({}, content, {"patterns": patterns})
    lines = iter(text.splitlines())
    assert all(line in lines for line in ToolOutput(kept).text.splitlines())
    again = exclude_directories.filter_output({}, kept, {"patterns": patterns})
    assert ToolOutput(again).text == ToolOutput(kept).text


async def test_grep_leaves_files_out_that_fit_a_glob(home: Path, project: Path) -> None:
    """grep gets the globs as its argument; the output of a tool without such an argument is filtered."""
    plant(project)
    step = "{name: add_default_excludes, config: {glob_excludes: ['*.min.js']}}"
    text = f"version: 1\ntools: {{grep: {{transformers: [{step}]}}}}"
    tool, _ = around(host_tool("grep", project), loaded(project, home, text))
    output = await tool.execute("1", {"pattern": "needle", "path": "src", "exclude": ["*.py"]})
    assert output.text.splitlines() == [
        "no matches",
        "[3 files left out by exclude]",
        "[add_default_excludes changed this call of grep: exclude=*.py, *.min.js]",
    ]
    content = ToolOutput("a.min.js:1: x\nb/a.min.js\na.js").content
    assert ToolOutput(add_default_excludes.filter_output({}, content, {"glob_excludes": ["*.min.js"]})).text == "a.js"
    assert add_default_excludes.filter_output({}, content, {}) == content
    assert add_default_excludes.transform({"a": 1}, {}) == {"a": 1}


# ---- default arguments


def test_default_args_sets_what_is_absent_and_appends_once() -> None:
    """A given value stays, a text that is at the end is not appended again, and lists get an item."""
    config = {
        "set": {"timeout": 60, "path": "."},
        "append": {"command": " --color=never", "exclude": "dist", "no": "x"},
    }
    given_input = {"command": "ls", "timeout": 5, "exclude": ["a"]}
    once = default_args(given_input, config)
    assert once == {"command": "ls --color=never", "timeout": 5, "path": ".", "exclude": ["a", "dist"]}
    assert default_args(once, config) == once
    assert given_input == {"command": "ls", "timeout": 5, "exclude": ["a"]}
    with pytest.raises(TypeError, match="append: timeout is int"):
        default_args({"timeout": 5}, {"append": {"timeout": "x"}})


# ---- chains and failures

OWN = """
    version: 1
    tools:
      bash:
        transformers:
          - {name: default_args, config: {append: {command: " one"}}}
          - {name: mine, config: {word: two}}
"""


async def test_two_transformers_are_chained_before_everybody_who_judges(home: Path, project: Path) -> None:
    """A gate gets the input that would really run."""
    mine = """
        def transform(tool_input, config):
            tool_input["command"] += " " + config.pop("word")
            return tool_input
    """
    seen: list[Any] = []

    async def gate(event: ToolCall, ctx: object) -> Block | None:
        seen.append(event.input["command"])
        return None

    bare = EchoTool()
    tool, errors = around(bare, loaded(project, home, OWN, mine=mine), hook_on("tool_call", gate))
    # A transformer changes copies of its arguments, so the second call has the same result.
    for _ in range(2):
        await tool.execute("1", {"command": "echo"})
    assert seen == ["echo one two"] * 2
    assert bare.inputs == [{"command": "echo one two"}] * 2
    assert errors == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise ValueError('oh no')", "ValueError: oh no"),
        ("raise SystemExit(2)", "SystemExit: 2"),
        ("return None", "transform returned None; it must return the input as a dict"),
        ("return [tool_input]", "it must return the input as a dict"),
        ("tool_input['me'] = tool_input; return tool_input", "RecursionError"),
        ("return {'command': 5}", "5 is not of type"),
        ("return {}", "command"),
    ],
)
async def test_a_transformer_that_fails_blocks_the_call_and_is_named(
    home: Path, project: Path, body: str, text: str
) -> None:
    """The text has the place of its configuration; listeners get file and line."""
    mine = f"\n\ndef transform(tool_input, config):\n    {body}\n"
    bare = EchoTool()
    tool, errors = around(bare, loaded(project, home, OWN, mine=mine))
    output = await tool.execute("1", {"command": "echo"})
    assert output.is_error
    assert bare.inputs == []
    assert text in output.text
    assert "mine" in output.text
    assert output.details["status"] == "blocked"
    # An input that breaks the tool's schema is no exception of the transformer.
    if "Error" in text or "dict" in text:
        [error] = errors
        assert str(project / ".agent/transformers/mine.py") == error.hook_path
        assert error.outcome == "blocked"
        assert error.line == (4 if "ValueError" in text else None)
        assert f"transformer mine ({project}/.agent/command_intercept.yaml:7) failed: " in output.text


async def test_an_async_transformer_is_no_transformer(home: Path, project: Path) -> None:
    """A coroutine is no dict, so the call is blocked; Python prints no warning beside the error."""
    bare = EchoTool()
    mine = """
        async def later(tool_input):
            return tool_input

        def transform(tool_input, config):
            return later(tool_input)
    """
    tool, _ = around(bare, loaded(project, home, OWN, mine=mine))
    output = await tool.execute("1", {"command": "echo"})
    assert "transform returned <coroutine object later" in output.text
    assert bare.inputs == []


@pytest.mark.parametrize("body", ["raise ValueError('oh no')", "raise SystemExit(2)", "return 5", "return [5]"])
async def test_a_filter_that_fails_loses_no_result(home: Path, project: Path, body: str) -> None:
    """The tool has run, so its result stays, with a note that nothing was removed."""
    mine = f"""
        def transform(tool_input, config):
            return tool_input

        def filter_output(tool_input, content, config):
            {body}
    """
    tool, errors = around(EchoTool(), loaded(project, home, OWN, mine=mine))
    output = await tool.execute("1", {"command": "echo"})
    assert output.text.startswith("ran echo one\n[default_args changed")
    assert "failed on this result, so it took nothing out" in output.text
    assert not output.is_error
    [error] = errors
    assert (error.handler, error.outcome) == ("filter_output", "continued")


async def test_a_filter_may_return_text(home: Path, project: Path) -> None:
    """The note says `changed` when no line was removed."""
    mine = """
        def transform(tool_input, config):
            return tool_input

        def filter_output(tool_input, content, config):
            return content[0].text.upper()
    """
    tool, _ = around(EchoTool(), loaded(project, home, OWN, mine=mine))
    output = await tool.execute("1", {"command": "echo"})
    assert output.text.splitlines()[::2] == ["RAN ECHO ONE", "[mine changed this result of bash]"]


async def test_a_transformer_needs_no_file(home: Path, project: Path) -> None:
    """A program may pass an object; a transformer without an object blocks."""

    class Shout:
        def transform(self, tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
            return {"command": tool_input["command"].upper()}

    bare = EchoTool()
    runner, _ = runner_of(transformers=[ConfiguredTransformer(tool="bash", name="shout", transformer=Shout())])
    assert "RAN LS" in (await wrap_tool(bare, runner).execute("1", {"command": "ls"})).text.upper()
    runner, _ = runner_of(transformers=[ConfiguredTransformer(tool="bash", name="shout")])
    output = await wrap_tool(bare, runner).execute("1", {"command": "ls"})
    assert "transformer shout failed: there is no such transformer" in output.text
    assert bare.inputs == [{"command": "LS"}]


# ---- mistakes in the configuration

# The text below `tools`, from line 3 on: the tool, the line, the text of the error.
WRONG = {
    "b: {transformers: [{name: exclude_dirs}]}": (
        "b",
        3,
        "key 'tools.b.transformers[0].name': unknown transformer 'exclude_dirs'; did you mean 'exclude_directories'?",
    ),
    "b: {}\n  b: {}": ("b", 4, "key 'tools': 'b' is given twice"),
    "b: {enabled: on}": (
        "b",
        3,
        "key 'tools.b.enabled': YAML reads on as true or false; write that, or put it in quotes",
    ),
    "b: {enabled: 'no'}": ("b", 3, "key 'tools.b.enabled': expected true or false, found 'no'"),
    "on: {}": ("on", 3, "key 'tools': YAML reads the key 'on' as true or false; put it in quotes"),
    "5: {}": ("5", 3, "key 'tools': YAML reads the key '5' as a number; put it in quotes"),
    "b: {transformer: []}": ("b", 3, "key 'tools.b': unknown key 'transformer'; did you mean 'transformers'?"),
    "b: []": ("b", 3, "key 'tools.b': expected a mapping, found a list; write transformers: above the list"),
    "b: {transformers: {}}": ("b", 3, "key 'tools.b.transformers': expected a list, found a mapping"),
    "b:\n    transformers:\n    - x": (
        "b",
        5,
        "key 'tools.b.transformers[0]': expected a mapping, found 'x'; write - name: x",
    ),
    "b:\n    transformers:\n    - {}": ("b", 5, "key 'tools.b.transformers[0]': name is missing"),
    "b: {transformers: [{name: 5}]}": ("b", 3, "key 'tools.b.transformers[0].name': expected a text, found '5'"),
    "b: {transformers: [{name: x, config: 5}]}": (
        "b",
        3,
        "key 'tools.b.transformers[0].config': expected a mapping, found '5'",
    ),
    "b:\n    transformers:\n    - name: default_args\n      config: {sett: {}}": (
        "b",
        6,
        "key 'tools.b.transformers[0].config': unknown key 'sett'; did you mean 'set'?",
    ),
    "b:\n   transformers:\n   - name: exclude_directories\n     config:\n      patterns:\n      - a\n      - 5": (
        "b",
        9,
        "key 'tools.b.transformers[0].config.patterns[1]': Expected str, got int",
    ),
    "b: {transformers: [{name: default_args, config: {set: {a: 1, a: 2}}}]}": (
        "b",
        3,
        "key 'tools.b.transformers[0].config': 'a' is given twice",
    ),
    "a: &x {}\n  b: *x": ("b", 4, "key 'tools.b': the alias *x is not read; write out its value"),
    "b: {<<: {enabled: true}}": ("b", 3, "key 'tools.b': expected a name as key, found '<<'"),
    "b: {[x]: 1}": ("b", 3, "key 'tools.b': expected a name as key, found a list"),
    "b: {enabled: !!python/name:os.system x}": (
        "b",
        3,
        "key 'tools.b.enabled': the tag tag:yaml.org,2002:python/name:os",
    ),
    "b: {transformers: [{name: default_args, config: {set: {day: 2026-01-01}}}]}": (
        "b",
        3,
        "YAML reads '2026-01-01' as timestamp; put it in quotes",
    ),
}


@pytest.mark.parametrize("text", WRONG)
async def test_a_mistake_below_a_tool_blocks_that_tool_with_file_line_and_key(
    home: Path, project: Path, text: str
) -> None:
    """The tool is blocked until the mistake is mended, and other tools run."""
    name, line, error = WRONG[text]
    path = configure(project, f"version: 1\ntools:\n  {text}\n  other:\n    transformers: [{{name: default_args}}]\n")
    found = load_transformers(cwd=project, home=home)
    [mistake] = found.errors
    assert (mistake.path, mistake.line) == (str(path), line)
    assert mistake.error.startswith(error) or error in mistake.error
    assert mistake.error.endswith(f"; calls of {name} are blocked until it is mended")
    bare, other = EchoTool(name), EchoTool("other")
    blocked, _ = around(bare, found)
    output = await blocked.execute("1", {"command": "ls"})
    assert output.is_error
    assert f"{path}:{line}: " in output.text
    assert bare.inputs == []
    running, _ = around(other, found)
    assert (await running.execute("1", {"command": "ls"})).text == "ran ls"


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("tools: [", 1, "is not YAML: "),
        ("version: 1\ntools: {bash: {enabled: true}\n", 3, "is not YAML: "),
        ("version: 1\ntools:\n  bash:\n    enabled: true\n   find: {}\n", 5, "is not YAML: "),
        ("a: b: c", 1, "mapping values are not allowed here"),
        ("version: 1\n--- \nversion: 1\n", 2, "but found another document"),
        ("version: 1\x00", None, "special characters are not allowed"),
        (b"version: 1 # \xff", None, "is not YAML: "),
        ("[" * 3000, None, "is nested too deeply"),
        ("", 1, "expected a mapping, found nothing"),
        ("5", 1, "expected a mapping, found '5'"),
        ("[a]", 1, "expected a mapping, found a list"),
        ("version: 1\ntools: 5", 2, "key 'tools': expected a mapping, found '5'"),
        ("version: 1\ntools: {'find,,ls': {}}", 2, "key 'tools': 'find,,ls' has an empty name"),
        ("tools: {bash: {}}", 1, "key 'version': is missing: the file begins with version: 1"),
        ("version: 2\ntools: {bash: {}}", 1, "key 'version': expected 1, found '2'"),
        ("version: 1\ntool: {bash: {}}", 2, "unknown key 'tool'; did you mean 'tools'?"),
        ("version: 1\nbash: {}", 2, "known are: enabled, tools, version; write the name of a tool below tools:"),
        ("version: 1\nenabled: fals", 2, "key 'enabled': expected true or false, found 'fals'"),
        ("version: 1\ntools: {}\ntools: {bash: {}}", 3, "'tools' is given twice"),
    ],
)
async def test_a_mistake_outside_of_the_sections_of_tools_blocks_every_call(
    home: Path, project: Path, text: str | bytes, line: int | None, error: str
) -> None:
    """The tools that the file should name are unknown; the error has the file, the line and the remedy."""
    configure(home, "version: 1\ntools: {bash: {transformers: [{name: default_args}]}}")
    path = configure(project, "")
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    found = load_transformers(cwd=project, home=home)
    [mistake] = found.errors
    assert error in mistake.error
    assert mistake.error.endswith("; every call is blocked until it is mended")
    assert mistake.line == line
    for name in ("bash", "another"):
        bare = EchoTool(name)
        tool, _ = around(bare, found)
        output = await tool.execute("1", {"command": "ls"})
        assert output.is_error
        assert str(path) in output.text
        assert bare.inputs == []


@given(st.text() | st.binary())
def test_no_text_makes_the_reader_fail(text: str | bytes) -> None:
    """A text that is no configuration gives an error in the result, never an exception."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    file = parse(data, "x.yaml")
    assert file.errors or any(section.errors for section in file.tools.values())


async def test_a_file_that_cannot_be_read_blocks_every_call(home: Path, project: Path) -> None:
    """A directory or a dangling symlink in its place is an error."""
    (home / ".agent" / "command_intercept.yaml").mkdir(parents=True)
    (project / ".agent").mkdir()
    (project / ".agent" / "command_intercept.yaml").symlink_to("nowhere")
    found = load_transformers(cwd=project, home=home)
    place, remedy = f"{project}/.agent/command_intercept.yaml", "; every call is blocked until it is mended"
    assert [error.error for error in found.errors] == [
        f"is not a regular file{remedy}",
        f"cannot be read: {place} is a symlink to a missing file{remedy}",
    ]
    bare = EchoTool()
    output = await around(bare, found)[0].execute("1", {"command": "ls"})
    assert output.is_error
    assert bare.inputs == []


def test_a_file_without_rights_blocks_every_call(home: Path, project: Path) -> None:
    """The reader is another user than the owner, because root may read every file."""
    path = configure(project, "version: 1")
    path.chmod(0)
    # The directory is entered and the module imported first, because another user may not pass the directories above.
    code = dedent(f"""
        import os
        from agent_hooks.transformers.command_intercept import load_transformers
        os.chdir({str(path.parent)!r})
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)
        found = load_transformers(files=["command_intercept.yaml"], cwd="/", home="/nowhere")
        print([step.tool for step in found.configured], found.errors[0].error)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.startswith("[''] cannot be read: Permission denied; every call is blocked"), done.stderr


# ---- names of tools

CHANGE = "transformers: [{name: default_args, config: {append: {command: ' x'}}}]"


def ours(name: str) -> str:
    """Return our name of a tool of another agent."""
    return {"Glob": "find", "Bash": "bash"}.get(name, name)


@pytest.mark.parametrize("tools", ["find, bash: {%s}", "'Glob,Bash': {%s}", "? find , bash\n  : {%s}"])
async def test_one_key_names_several_tools_by_either_name(home: Path, project: Path, tools: str) -> None:
    """The names are separated by commas."""
    configure(project, f"version: 1\ntools:\n  {tools % CHANGE}")
    found = load_transformers(cwd=project, home=home, our_name=ours)
    assert found.errors == ()
    for name in ("find", "bash"):
        tool, _ = around(EchoTool(name), found)
        assert (await tool.execute("1", {"command": "ls"})).text.startswith("ran ls x\n")


async def test_a_tool_of_a_hook_keeps_a_name_of_another_agent(home: Path, project: Path) -> None:
    """A section of Glob is one of find too, and stays one of a tool that is named Glob."""
    configure(project, f"version: 1\ntools: {{Glob: {{{CHANGE}}}}}")
    found = load_transformers(cwd=project, home=home, our_name=ours)
    tool, _ = around(EchoTool("Glob"), found)
    assert (await tool.execute("1", {"command": "ls"})).text.startswith("ran ls x\n")


def test_either_name_switches_a_tool_off_and_allows_it(home: Path, project: Path) -> None:
    """The agent home's file and the project's may use different names."""
    configure(home, "version: 1\ntools: {Glob: {enabled: false}, Bash: {auto_allow: true}}")
    configure(project, f"version: 1\ntools: {{find: {{{CHANGE}}}}}")
    found = load_transformers(cwd=project, home=home, our_name=ours)
    assert found.configured == ()
    assert found.auto_allow == {"Bash", "bash"}


@pytest.mark.parametrize(
    ("text", "tools", "error"),
    [
        ("{find: {}, 'find, ls': {}}", ["find"], "'find' is given twice"),
        ("{'ls, ls': {}}", ["ls"], "'ls' is given twice"),
        (
            "{find, ls: {}}",
            ["find"],
            "'find' has no section; between braces, put several names in quotes: 'find, grep'",
        ),
        (
            "{'find, ls': {enabled: 5}}",
            ["find", "ls"],
            "key 'tools.find, ls.enabled': expected true or false, found '5'",
        ),
    ],
)
def test_a_mistake_of_a_key_with_several_names_blocks_them(
    home: Path, project: Path, text: str, tools: list[str], error: str
) -> None:
    """It is one mistake, which names all tools that it blocks."""
    found = loaded(project, home, f"version: 1\ntools: {text}")
    [mistake] = found.errors
    assert error in mistake.error
    assert mistake.error.endswith(f"; calls of {', '.join(tools)} are blocked until it is mended")
    assert [step.tool for step in found.configured if step.problem] == tools


# ---- users' own

MINE = "version: 1\ntools: {bash: {transformers: [{name: mine}]}}"


@pytest.mark.parametrize(
    ("source", "line", "error"),
    [
        ("x = 1\ndef transform(:\n", 2, "SyntaxError: "),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("x = 1\n", None, "there is no transform: a transformer defines `def transform(tool_input, config): ...`"),
        (
            "class Mine:\n    def transform(self, tool_input, config): return tool_input\n",
            None,
            "there is no transform, only the class Mine; take its method out of the class, without `self`: a transformer",
        ),
        ("class transform: pass\n", None, "there is no transform, only the class transform; "),
        (
            "async def transform(tool_input, config): ...\n",
            None,
            "transform is an `async def`: a transformer waits for ",
        ),
        ("def transform(tool_input): ...\n", None, "transform cannot be called with (tool_input, config): too many"),
    ],
)
def test_an_own_transformer_that_cannot_be_loaded_blocks_the_tool(
    home: Path, project: Path, source: str, line: int | None, error: str
) -> None:
    """The error names its file and line."""
    found = loaded(project, home, MINE, mine=source)
    [mistake] = found.errors
    assert (mistake.path, mistake.line) == (str(project / ".agent/transformers/mine.py"), line)
    assert mistake.error.startswith(error)
    assert [step.tool for step in found.configured if step.problem] == ["bash"]


async def test_a_transformer_beside_the_file_comes_before_the_agent_homes(home: Path, project: Path) -> None:
    """The agent home's transformers serve every project; each may import modules beside it."""
    source = "from words import WORD\ndef transform(tool_input, config): return {'command': WORD}\n"
    configure(home, "version: 1", mine=source, words="WORD = 'home'")
    configure(project, MINE)
    tool, _ = around(EchoTool(), load_transformers(cwd=project, home=home))
    assert (await tool.execute("1", {"command": "ls"})).text.startswith("ran home\n")
    configure(project, MINE, mine=source, words="WORD = 'project'")
    tool, _ = around(EchoTool(), load_transformers(cwd=project, home=home))
    assert (await tool.execute("1", {"command": "ls"})).text.startswith("ran project\n")


def test_the_configuration_of_an_own_transformer_can_be_checked(home: Path, project: Path) -> None:
    """A `Config` works as in built-in transformers; for an unknown name, own names are suggested too."""
    mine = """
        from msgspec import Struct

        class Config(Struct):
            words: list[str]

        def transform(tool_input, config): return tool_input
    """
    steps = ("{name: mine, config: {words: 5}}", "{name: mein}")
    text = "version: 1\ntools: {{bash: {{transformers: [{}]}}, ls: {{transformers: [{}]}}}}".format(*steps)
    found = loaded(project, home, text, mine=mine)
    assert "config.words': Expected array, got int" in found.errors[0].error
    assert "unknown transformer 'mein'; did you mean 'mine'?" in found.errors[1].error


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_each_built_in_transformer_has_the_form_of_a_users_own(name: str) -> None:
    """It is a module with `transform` and `Config`, and changes nothing without a configuration."""
    module: Any = builtin_transformer(name)
    assert module.transform({"a": 1}, {}) == {"a": 1}
    assert module.Config() is not None


async def test_a_file_that_takes_long_to_read_blocks_every_call_at_once(home: Path, project: Path) -> None:
    """A file above 256 KiB is not read: it blocks the call, before an agent stops waiting for the answer."""
    path = configure(project, "version: 1\n# " + "x" * 20_000_000 + "\n")
    began = monotonic()
    found = load_transformers(cwd=project, home=home)
    assert monotonic() - began < 2
    assert [each.error for each in found.errors] == ["is larger than 256 KiB; every call is blocked until it is mended"]
    bare = EchoTool("bash")
    blocked, _ = around(bare, found)
    output = await blocked.execute("1", {"command": "ls"})
    assert output.is_error
    assert str(path) in output.text
    assert bare.inputs == []
