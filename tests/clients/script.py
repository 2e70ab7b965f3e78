"""A model that plays a script in any client: the script names calls in words of ours, the client's tools are found.

    Script(Calls(Shell("touch made")), Text("done"))

Clients make more requests than a person's prompts need: for titles, summaries, the next speaker.  These offer no tools or
want JSON, and take no step of the script.  A request that comes again, after a lost connection say, gets the same reply.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clients.conversation import Conversation, Offered, read, wants_json
from model_server import Custom, InNamespace, Recorded, Reply, Say

# The names of the tools that clients offer for the same work, and of their arguments.
SHELL = ("Bash", "bash", "exec_command", "shell_command", "run_shell_command", "shell", "exec", "powershell")
WRITE = ("Write", "write", "write_file", "create")
AGENT = ("Agent", "Task", "task", "spawn_agent", "agent", "sessions_spawn", "invoke_agent", "generalist")
COMMAND_KEYS = ("command", "cmd")
PATH_KEYS = ("file_path", "filePath", "path", "absolute_path")
TEXT_KEYS = ("content", "file_text", "text")
PROMPT_KEYS = ("prompt", "message", "task", "request", "objective")
SIDE_JSON = {
    "title": "a title",
    "reasoning": "r",
    "next_speaker": "user",
    "complexity_reasoning": "r",
    "complexity_score": 1,
    "model_choice": "flash",
}
SUMMARY = "all of it, in short"
"""The text of a summary that a client asks for."""


class NotOfferedError(Exception):
    """A client offers no tool for a call of the script."""


class SearchError(Exception):
    """A client offers a tool only after a search; `call` is the search."""

    def __init__(self, name: str, input: dict[str, Any]) -> None:
        super().__init__(name)
        self.call = (name, input)


@dataclass(frozen=True)
class Shell:
    """A command in the client's own shell tool."""

    command: str


@dataclass(frozen=True)
class Write:
    """A file, by the client's own tool that writes one."""

    path: str
    content: str


@dataclass(frozen=True)
class Patch:
    """A patch in Codex's form, by the tool `apply_patch`."""

    text: str


@dataclass(frozen=True)
class Mcp:
    """A tool of the server `probe`, whose name each client prefixes in a way of its own."""

    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class Helper:
    """A sub-agent that works on a prompt."""

    prompt: str


Call = Shell | Write | Patch | Mcp | Helper


@dataclass(frozen=True)
class Text:
    """A response that is only text; without calls, it ends the agent's work."""

    text: str


@dataclass(frozen=True)
class Calls:
    """A response with calls."""

    calls: tuple[Call, ...]

    def __init__(self, *calls: Call) -> None:
        object.__setattr__(self, "calls", calls)


Step = Text | Calls


@dataclass
class Script:
    """The replies of the main agent in `steps`, and of sub-agents by a word of their prompt in `helpers`.

    `last`: the text after the last step.  `tokens`: the size of each prompt, for clients that compact.
    `missing`: the calls that the client has no tool for.  `seen`, `helped`: the requests of the main agent, and of
    sub-agents.
    """

    steps: deque[Step]
    helpers: dict[str, deque[Step]] = field(default_factory=dict)
    last: str = "that is all"
    tokens: int = 11
    missing: list[str] = field(default_factory=list)
    seen: list[Conversation] = field(default_factory=list)
    helped: list[Conversation] = field(default_factory=list)
    searched: bool = False
    _given: dict[str, Reply] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """The number of requests, those for summaries and titles too; a repeated one counts once."""
        return len(self._given)

    def __call__(self, request: Recorded) -> Reply:
        """Return the reply to a request."""
        key = hashlib.sha256(json.dumps(request.body, sort_keys=True).encode()).hexdigest()
        if key not in self._given:
            self._given[key] = self._answer(request, f"{len(self._given)}_")
        return self._given[key]

    def _answer(self, request: Recorded, id: str) -> Reply:
        if wants_json(request):
            return Say(json.dumps(SIDE_JSON))
        conversation = read(request)
        if not conversation.tools:
            if "summar" in conversation.texts("system", "user").lower():
                # After a compaction, the window is empty.
                self.tokens = 11
            return Say(f"<summary>{SUMMARY}</summary>")
        steps, seen = self._part(conversation)
        if seen is self.seen and self._is_aside(conversation):
            return Say(self.last)
        seen.append(conversation)
        if not steps:
            return Say(self.last, tokens=self.tokens)
        step = steps.popleft()
        match step:
            case Text(text=text):
                return Say(text, tokens=self.tokens)
            case Calls(calls=calls):
                try:
                    return Say(calls=[call_of(each, conversation) for each in calls], id=id, tokens=self.tokens)
                except SearchError as exc:
                    if self.searched:
                        self.missing.append(f"no result of {exc}")
                        return Say(self.last)
                    self.searched = True
                    steps.appendleft(step)
                    return Say(calls=[exc.call], id=id)
                except NotOfferedError as exc:
                    self.missing.append(str(exc))
                    return Say(self.last)

    def _is_aside(self, conversation: Conversation) -> bool:
        """Return whether another agent of the client asks, one that remembers things, say: it has fewer tools."""
        return bool(self.seen) and 2 * len(conversation.tools) < len(self.seen[0].tools)

    def _part(self, conversation: Conversation) -> tuple[deque[Step], list[Conversation]]:
        """Return the steps and the list of a conversation: that of a sub-agent, if its prompt is one's."""
        said = conversation.texts("user")
        for word, steps in self.helpers.items():
            if word in said:
                return steps, self.helped
        return self.steps, self.seen


def script(
    *steps: Step,
    helpers: Mapping[str, Sequence[Step]] | None = None,
    last: str = "that is all",
    tokens: int = 11,
) -> Script:
    """Return a script."""
    return Script(deque(steps), {word: deque(each) for word, each in (helpers or {}).items()}, last, tokens)


def call_of(call: Call, conversation: Conversation) -> tuple[str, Any]:
    """Return a call with the name and the arguments of the client's tool.  Raises `NotOfferedError`."""
    tools = {tool.name: tool for tool in conversation.tools}
    match call:
        case Shell(command=command):
            if _is_code_mode(tools):
                return _named(tools["exec"]), _javascript(f"tools.exec_command({json.dumps({'cmd': command})})")
            if "codemode" in tools and not tools.keys() & {*SHELL}:
                # pi's code mode hides the other tools.
                call_in_script = f"tools.bash({json.dumps({'command': command})})"
                code = f"try {{ text(await {call_in_script}) }} catch (error) {{ text(String(error)) }}"
                return _named(tools["codemode"]), Custom(code) if tools["codemode"].custom else {"code": code}
            tool = _pick(tools, SHELL)
            return _named(tool), _complete(tool, _fill(tool, COMMAND_KEYS, command))
        case Write(path=path, content=content):
            tool = _pick(tools, WRITE)
            return _named(tool), _complete(tool, {**_fill(tool, PATH_KEYS, path), **_fill(tool, TEXT_KEYS, content)})
        case Patch(text=text):
            if _is_code_mode(tools):
                return _named(tools["exec"]), _javascript(f"tools.apply_patch({json.dumps(text)})")
            tool = _pick(tools, ("apply_patch",))
            if tool.custom:
                return tool.name, Custom(text)
            return _named(tool), _complete(tool, _fill(tool, ("patchText", "patch", "input"), text))
        case Mcp(tool=word, input=input):
            return _mcp(word, dict(input), tools, conversation)
        case Helper(prompt=prompt):
            tool = _pick(tools, AGENT)
            return _named(tool), _complete(tool, _fill(tool, PROMPT_KEYS, prompt))


def _mcp(word: str, input: dict[str, Any], tools: Mapping[str, Offered], said: Conversation) -> tuple[str, Any]:
    """Return a call of the server's tool: offered, below another tool, or searched for first.

    Raises `SearchError` with the call that searches, if the client offers a search.
    """
    found = [tool for name, tool in tools.items() if "probe" in name + tool.namespace and name.endswith(word)]
    if found:
        return _named(found[0]), input
    if _is_code_mode(tools):
        return _named(tools["exec"]), _javascript(f"tools.mcp__probe__{word}({json.dumps(input)})")
    if "list_mcp_resources" in tools:
        # Codex runs a tool that it has not declared, too.
        return InNamespace(word, "mcp__probe"), input
    if "tool_call" not in tools:
        raise NotOfferedError(f"{word} of the server probe, in {sorted(tools)}")
    names = re.findall(rf"\b[\w.:-]*probe[\w.:-]*{word}\b", "\n".join(said.results))
    if not names:
        raise SearchError("tool_search", {"query": f"probe {word}"})
    key = next(key for key in ("name", "id", "tool") if key in tools["tool_call"].schema.get("properties", {}))
    below = next(key for key in ("arguments", "args", "input") if key in tools["tool_call"].schema["properties"])
    return "tool_call", {key: names[-1], below: input}


def _javascript(call: str) -> Custom:
    """Return a script of Codex's code mode: a call that is refused is a text too."""
    return Custom(f"try {{ text(await {call}) }} catch (error) {{ text(String(error)) }}")


def _is_code_mode(tools: Mapping[str, Offered]) -> bool:
    return "exec" in tools and tools["exec"].custom


def _named(tool: Offered) -> str:
    return InNamespace(tool.name, tool.namespace) if tool.namespace else tool.name


def _pick(tools: Mapping[str, Offered], names: Sequence[str]) -> Offered:
    for name in names:
        if name in tools:
            return tools[name]
    raise NotOfferedError(f"{names[0]}, in {sorted(tools)}")


def _fill(tool: Offered, keys: Sequence[str], value: str) -> dict[str, Any]:
    properties = tool.schema.get("properties") or {}
    key = next((key for key in keys if key in properties), keys[0])
    if str((properties.get(key) or {}).get("type")).lower() == "array":
        return {key: ["bash", "-lc", value]}
    return {key: value}


def _complete(tool: Offered, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with a plain value for each that the tool requires."""
    properties = tool.schema.get("properties") or {}
    for name in tool.schema.get("required") or ():
        if name not in arguments:
            arguments[name] = _plain(name, properties.get(name) or {})
    # A sub-agent that works at once, and in Codex on its own prompt only.
    if "run_in_background" in properties:
        arguments["run_in_background"] = False
    if {"fork_turns", "task_name"} <= {*properties}:
        arguments["fork_turns"] = "none"
    return arguments


def _plain(name: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    match str(schema.get("type", "string")).lower():
        case "number" | "integer":
            return 60_000 if "timeout" in name.lower() else 1
        case "boolean":
            return False
        case "array":
            return []
        case "object":
            return {}
    return {
        "subagent_type": "general",
        "agent_type": "general-purpose",
        "agent_name": "generalist",
        "task_name": "helper",
    }.get(name, "as the test says")
