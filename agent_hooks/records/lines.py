"""The lines of a record file: one frozen value for each kind, as JSON with camel-case keys and the kind in `kind`.

A tool call has two lines, `decision` and `result`, and each question about it has two, `question` and `answer`; all
lines of one call bear the same `id`.  A reader ignores keys that it does not know, and a field that is left out has its
default.  `VERSION` grows when a key changes its meaning; no number is ever used twice.

Every text that a person, a model or a hook wrote is redacted and cut before it is written.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

VERSION = 1
"""The version of the schema, the `v` of every line."""

# `pass`: no handler objected; `allow`: the person or `permission.ask` said yes; `ask`: another agent puts the question to
# the person; `block`: the tool did not run; `aborted`: the call was left before it was judged.
Verdict = Literal["pass", "allow", "ask", "block", "aborted"]
# `silent`: the handler returned nothing; `context`: it adds a text for the model; `stop`: it ends the run; `failed`,
# `timeout`, `stopped`: it gave no answer.
StepAnswer = Literal[
    "silent",
    "block",
    "ask",
    "rewrite",
    "replace",
    "cancel",
    "continue",
    "context",
    "stop",
    "compaction",
    "skip",
    "changed",
    "allow",
    "deny",
    "failed",
    "timeout",
    "stopped",
]
# `continued`: the event went on to the next handler; `blocked`: the step stopped it; `timeout`: the deadline ended the
# step, and `answer` and the verdict tell whether that blocked; `settled`: the step answered the question.
StepOutcome = Literal["continued", "blocked", "timeout", "settled"]
# `expired`: the call, turn or session was over before an answer; `failed`: the question could not be shown; `unknown`:
# the agent that asked did not report the answer.
Reply = Literal["yes", "no", "text", "cancelled", "expired", "failed", "nobody", "unknown"]
ResultStatus = Literal["ok", "error", "blocked", "aborted"]


class Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the values inside of a line."""


class Change(Part, frozen=True, kw_only=True):
    """One operation of a patch, as in RFC 6902: `add`, `remove` or `replace` of the value at a JSON pointer."""

    op: Literal["add", "remove", "replace"]
    path: str
    # Redacted and cut.
    value: Any = None


class Step(Part, frozen=True, kw_only=True):
    """One handler, guard, transformer, interceptor or question that a call or an event passed, in this order.

    `stage`: the step of the pipeline or the name of the event or point: `transform`, `tool.before`, `before_tool_call`,
    `guards`, `tool_call`, `permission.ask`, `ask`, `filter`, `tool_result`, `tool.after`, `redact`, `after_tool_call`,
    `session`, `message.before` …; `at`: milliseconds from the beginning of the call or event to that of the step;
    `ms`: its duration in milliseconds, with the time in which a dialog was open.
    """

    stage: str
    # The short name of the hook, the guard's or transformer's name, or the interceptor's id.
    by: str = ""
    # The function of the hook.
    handler: str = ""
    # The hook's file, absolute, its SHA-256 (64 digits) when it was loaded, and the line of the handler.
    file: str = ""
    sha256: str = ""
    line: int | None = None
    priority: int = 0
    answer: StepAnswer = "silent"
    outcome: StepOutcome = "continued"
    # The reason of a block, the title of a question, the text of a failure.
    reason: str = ""
    # The id of the rule that the call met, and how a person allows it.
    rule: str = ""
    remedy: str = ""
    # The change of the input, from the step before to this one.
    rewrite: tuple[Change, ...] = ()
    # The fields of a result or an event that the step changed: `content`, `details`, `is_error` …
    changed: tuple[str, ...] = ()
    # The programs that a guard found in a command, in order.
    programs: tuple[str, ...] = ()
    at: float = 0.0
    ms: float = 0.0


class Line(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="kind", forbid_unknown_fields=False
):
    """Base of all lines.

    `prev`: the hash (see `digests`) of the line before, without its newline; of the first line, that of the file's name;
    `n`: the number of the line in its file, from 1; `time`: the time of the machine's clock, which may go back;
    `clock`: nanoseconds of the system's monotonic clock, which orders the lines of several processes until a reboot;
    `id`: all lines of a call share it.  Each other line has its own.
    """

    v: int
    prev: str
    n: int
    time: datetime
    clock: int
    id: str
    session: str = ""
    # `main`, or the id of a sub-agent.
    agent: str = "main"
    # The `id` of the call whose tool or handler made this one.
    parent: str | None = None
    # The index of the turn in the session, where it is known.
    turn: int | None = None
    # The id of the turn as checkpoints count it, which `agent-hooks undo --turn` takes; empty without checkpoints.
    turn_id: str = ""
    # The agent that the hooks work for: `agent-hooks` for our host, else the bridge's name or the embedding program's.
    client: str = ""
    client_version: str = ""
    # The version of agent_hooks.
    version: str = ""
    # How the agent is driven: `interactive`, `rpc`, `print`, `embedded`, `bridge`.
    mode: str = ""
    # The client's own ids, as it sent them.
    client_session: str = ""
    client_call: str = ""
    # The file of the session or transcript, absolute.
    transcript: str = ""
    cwd: str = ""
    # The project's root directory, absolute.
    project: str = ""
    pid: int = 0
    # The state of the project's trust: `trusted`, `untrusted`, `changed`, `older`, `none` …, and the digest of the set.
    trust: str = ""
    trusted_set: str = ""
    # The SHA-256 of the settings in force.
    settings: str = ""


class Decision(Line, frozen=True, kw_only=True, tag="decision"):
    """A tool call was judged; written before the tool starts or the answer leaves."""

    tool: str
    # The client's own name of the tool, where it differs.
    native_tool: str = ""
    # `skill NAME` for a command in a skill's text.  A call of the model has none.
    origin: str = ""
    verdict: Verdict
    # The reason, origin, kind, rule and remedy of a block; of a question that is handed over, its title and origin.
    reason: str = ""
    by: str = ""
    cause: str = ""
    rule: str = ""
    remedy: str = ""
    # The input as the model asked for it, redacted; a text that ends in `…` when it was cut.
    input: Any = None
    # Bytes of the whole input as JSON, and whether `input` lacks some of them.
    input_size: int = 0
    input_cut: bool = False
    # The keyed digest (HMAC with BLAKE2b, 64 digits) of the input that would run, as JSON.
    digest: str = ""
    # Whether the call may change files of a git working tree, as its effects say.
    may_change: bool = False
    # The change from `input` to the input that would run.
    rewrite: tuple[Change, ...] = ()
    rewritten_by: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    # Milliseconds from the request to the verdict.
    ms: float = 0.0


class Result(Line, frozen=True, kw_only=True, tag="result"):
    """A tool call is over: the tool returned, failed, did not run, or was aborted."""

    tool: str
    native_tool: str = ""
    status: ResultStatus
    # The text of the failure or the refusal, redacted and cut.
    error: str = ""
    # Bytes of the result's text, as the agent is shown it.
    size: int = 0
    # The number of secrets that redaction hid in the result, by kind.
    redacted: dict[str, int] = field(default_factory=dict)
    # The mods that the agent loads, with tier and events, if the call ran although it was blocked.
    mods: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    # Milliseconds that the tool took; `None` when it did not run, or another agent did not report it.
    ms: float | None = None
    # The place in the transcript: the id of the entry or of the call there.
    reference: str = ""
    # The name of the checkpoint before the turn, if its files were saved by then.
    checkpoint: str = ""


class Observed(Line, frozen=True, kw_only=True, tag="observed"):
    """The observers of a finished call have run; absent when a call has no observers."""

    tool: str
    native_tool: str = ""
    steps: tuple[Step, ...] = ()


class Question(Line, frozen=True, kw_only=True, tag="question"):
    """A question to the person was opened.  A question about a call bears the call's `id`."""

    # `call`: the one question about a call; `dialog`: a handler's own; `permission`: the other agent's.
    about: Literal["call", "dialog", "permission"] = "call"
    # Numbers the questions of one `id`, from 1; the answer bears the same number.
    number: int = 1
    title: str = ""
    message: str = ""
    # The hooks and guards that ask, with their rules.
    by: str = ""
    # `person`: our own dialog; `client`: handed over to the other agent.
    to: Literal["person", "client"] = "person"
    tool: str = ""
    native_tool: str = ""
    # The keyed digest of the exact input that the question is about.
    digest: str = ""


class Answer(Line, frozen=True, kw_only=True, tag="answer"):
    """A question was settled or expired."""

    number: int = 1
    reply: Reply
    # The text of a reply that is no yes or no, redacted and cut; the failure of a question that could not be shown.
    text: str = ""
    # `person`, the id of an interceptor of `permission.ask`, `remembered`: a kept answer, or `client`: concluded from the
    # other agent's later events.
    who: str = ""
    # The login name of the user whose process it was.
    user: str = ""
    tool: str = ""
    native_tool: str = ""
    # The keyed digest of the exact input that was answered about.
    digest: str = ""
    # Milliseconds from the question to the answer.
    ms: float | None = None


class HookFile(Part, frozen=True, kw_only=True):
    """A loaded hook, guard or transformer file and its SHA-256."""

    path: str
    sha256: str = ""


class Session(Line, frozen=True, kw_only=True, tag="session"):
    """A session started, ended, or was changed: `event` is the reason of the session event, or `start`, `end`."""

    # `start`, `end`, `before_reload`, `reload`, `before_switch`, `switch`, `clear`, `branch`, `compact` …
    event: str
    # At a start and a reload: the hooks that are in force, and those that failed to load.
    hooks: tuple[HookFile, ...] = ()
    failed: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    # `cancelled`: a hook stopped the action.
    verdict: Literal["pass", "cancelled"] = "pass"
    reason: str = ""
    by: str = ""
    steps: tuple[Step, ...] = ()


class Prompt(Line, frozen=True, kw_only=True, tag="prompt"):
    """The person gave a prompt."""

    # Redacted and cut.
    text: str = ""
    size: int = 0
    cut: bool = False
    digest: str = ""
    verdict: Literal["pass", "block", "rewrite"] = "pass"
    reason: str = ""
    by: str = ""
    steps: tuple[Step, ...] = ()


class Run(Line, frozen=True, kw_only=True, tag="run"):
    """The agent began or ended its work on a prompt; at an end, `go_on` is the text with which a hook continues it."""

    event: Literal["start", "end"]
    go_on: str = ""
    by: str = ""
    steps: tuple[Step, ...] = ()


class Turn(Line, frozen=True, kw_only=True, tag="turn"):
    """A turn began or ended.

    `saved`: the files of a working tree were saved after a turn with calls that may have changed some; the line comes
    behind the `end`, one for each working tree.
    """

    event: Literal["start", "end", "saved"]
    calls: int = 0
    # The directory of the working tree, and the name of the checkpoint before the turn, as `checkpoints list` shows it.
    tree: str = ""
    checkpoint: str = ""
    # The files that the turn changed, relative to the working tree, and the number of those that are not named.
    files: tuple[str, ...] = ()
    more: int = 0
    # Whether the decisions of the turn say `mayChange`; older ones do not.
    marked: bool = False
    steps: tuple[Step, ...] = ()


class Happened(Line, frozen=True, kw_only=True, tag="event"):
    """Another event of an agent, which has no kind of line of its own; `event`: the agent's name for it."""

    event: str
    steps: tuple[Step, ...] = ()


class Note(Line, frozen=True, kw_only=True, tag="note"):
    """A fact about the records themselves.

    `unfinished`: `file` ends in a part of a line, from byte `offset` on; `lost`: `lines` lines could not be written
    (`reason` is the system's); `clock`: the machine's clock went back.
    """

    about: Literal["unfinished", "lost", "clock"]
    file: str = ""
    offset: int = 0
    bytes: int = 0
    lines: int = 0
    reason: str = ""


class Removed(Part, frozen=True, kw_only=True):
    """A record file that was removed: its name, its number of lines, the hash of the last, and the times of both ends."""

    file: str
    session: str = ""
    lines: int = 0
    head: str = ""
    first: datetime | None = None
    last: datetime | None = None


class Tombstone(Line, frozen=True, kw_only=True, tag="tombstone"):
    """Record files were removed; stands in the index."""

    why: Literal["prune", "forget"]
    files: tuple[Removed, ...] = ()
    bytes: int = 0
    user: str = ""


class Edit(Line, frozen=True, kw_only=True, tag="edit"):
    """A file that controls the agent changed during a session: settings, a hook, a transformer, a file of trust.

    `unlocked`: the person had allowed it for a time; `before`, `after`: SHA-256, empty where there was no file;
    `diff`: redacted and cut.
    """

    path: str
    what: str = ""
    before: str = ""
    after: str = ""
    diff: str = ""
    unlocked: bool = False


class Unlock(Line, frozen=True, kw_only=True, tag="unlock"):
    """The person let the agent change hooks and settings until a time, or that time ended; then `edits` is the result."""

    event: Literal["begin", "end"]
    until: datetime | None = None
    user: str = ""
    edits: tuple[HookFile, ...] = ()


class Remembered(Line, frozen=True, kw_only=True, tag="remembered"):
    """An answer of the person that counts for later calls: it was written, it allowed the call `parent`, or it ended.

    `scope`: `session` for one that ends with the session, `always` for one that stays until it is revoked; `number`: the
    name of one that stays; `program`: the program with its words, redacted; `hook`, `sha256`: the path of the hook and
    the SHA-256 of its source files; `counts_in`: git's common directory, or the directory, that the answer counts for.
    """

    event: Literal["written", "used", "revoked", "ended"]
    scope: Literal["session", "always"] = "always"
    number: int = 0
    tool: str = ""
    by: str = ""
    rule: str = ""
    program: str = ""
    hook: str = ""
    sha256: str = ""
    title: str = ""
    counts_in: str = ""
    user: str = ""


class Head(Line, frozen=True, kw_only=True, tag="head"):
    """The head of a record file at one moment; stands in the index.

    `file`: its name; `lines`, `bytes`: their number so far; `head`: the hash of the last line; `at`: the reason of
    this head.
    """

    file: str
    lines: int = 0
    bytes: int = 0
    head: str = ""
    at: Literal["start", "lines", "time", "end", "prune"] = "lines"


def begins_call(line: Line) -> bool:
    """Return whether a line begins another call, where a call with its `id` was judged before.

    Some models use the ids of their calls again, and another agent's call has an `id` that is made of the agent's own.
    """
    return isinstance(line, Decision) or (isinstance(line, Question) and line.about == "call")


def numbered(id: str, number: int) -> str:
    """Return the name of a call: its `id`, and from the second call with that `id` on the number too."""
    return id if number == 1 else f"{id}.{number}"


AnyLine = (
    Decision
    | Result
    | Observed
    | Question
    | Answer
    | Session
    | Prompt
    | Run
    | Turn
    | Happened
    | Note
    | Tombstone
    | Edit
    | Unlock
    | Remembered
    | Head
)
"""Every kind of line, for decoders."""
