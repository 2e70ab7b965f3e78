"""Values are read-only all the way down, and otherwise behave like the plain data that they were made from."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import (
    AfterToolCall,
    AgentEnd,
    AgentStart,
    Ask,
    AssistantMessage,
    Attachment,
    BeforeToolCall,
    Block,
    Cancel,
    CompactionEntry,
    Continue,
    CutPoint,
    Event,
    ImageContent,
    MessageEntry,
    ModelChangeEntry,
    ModelRef,
    PermissionInput,
    Replace,
    Rewrite,
    SessionEvent,
    SessionHeader,
    SkipConversationRestore,
    TextContent,
    ThinkingContent,
    ThinkingLevelChangeEntry,
    ToolCall,
    ToolCallContent,
    ToolOutput,
    ToolResult,
    ToolResultMessage,
    TurnEnd,
    TurnStart,
    Usage,
    UserMessage,
)
from agent_hooks.errors import HookError, HookUsageError, describe, place_in, shown, traceback_text
from agent_hooks.values.content import Entry, Message, content_blocks
from agent_hooks.values.events import EVENTS
from agent_hooks.values.frozen import freeze, frozen_and_plain, thaw

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)

USER = UserMessage(content="hello", timestamp=1)
ASSISTANT = AssistantMessage(
    content=(ThinkingContent("hm"), TextContent("yes"), ToolCallContent("1", "bash", {"command": "ls"})),
    timestamp=2,
    provider="p",
    model="m",
    usage=Usage(input_tokens=3),
)
RESULT = ToolResultMessage(tool_call_id="1", tool_name="bash", content="out", timestamp=3, details={"a": [1]})
ENTRIES: tuple[Entry, ...] = (
    SessionHeader(version=1, id="s", timestamp="t", cwd="/"),
    MessageEntry(timestamp="t", message=USER),
    ModelChangeEntry(timestamp="t", provider="p", model_id="m"),
    ThinkingLevelChangeEntry(timestamp="t", thinking_level="high"),
    CompactionEntry(timestamp="t", summary="s", first_kept_entry_index=1, tokens_before=9, from_hook=True),
)
SAMPLES: list[Event[Any]] = [
    SessionEvent(reason="start", entries=ENTRIES, session_file="/s.jsonl"),
    SessionEvent(
        reason="before_compact",
        cut_point=CutPoint(first_kept_entry_index=3, is_split_turn=True),
        messages_to_summarize=(USER,),
        messages_to_keep=(ASSISTANT, RESULT),
        tokens_before=7,
        model=ModelRef(provider="p", id="m"),
    ),
    AgentStart(),
    AgentEnd(messages=(USER, ASSISTANT, RESULT), continued=2),
    TurnStart(turn_index=0, timestamp=5, entry_index=2),
    TurnEnd(turn_index=0, message=ASSISTANT, tool_results=(RESULT,)),
    BeforeToolCall(tool_name="bash", params={"a": {"b": [1, {"c": 2}]}}, tool_call_id="1"),
    ToolCall(tool_name="bash", tool_call_id="1", input={"a": {"b": [1, {"c": 2}]}}, native={"x": [1]}),
    ToolResult(
        tool_name="bash",
        tool_call_id="1",
        input={"command": "ls"},
        content=[TextContent("a"), ImageContent("aGk=", "image/png")],
        details={"lines": [1, 2]},
        is_error=True,
        native={"x": [1]},
    ),
    AfterToolCall(tool_name="bash", params={"a": 1}, result=ToolOutput("x", {"k": []}), duration_ms=1.5),
]
IDS = [f"{event.type}-{getattr(event, 'reason', '')}".rstrip("-") for event in SAMPLES]

DICT_CHANGES: list[Callable[[Any], object]] = [
    lambda d: d.__setitem__("a", 1),
    lambda d: d.__delitem__("a"),
    lambda d: d.__ior__({"a": 1}),
    lambda d: d.clear(),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.setdefault("z", 1),
    lambda d: d.update(a=1),
]
LIST_CHANGES: list[Callable[[Any], object]] = [
    lambda x: x.__setitem__(0, 1),
    lambda x: x.__delitem__(0),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
    lambda x: x.append(1),
    lambda x: x.clear(),
    lambda x: x.extend([1]),
    lambda x: x.insert(0, 1),
    lambda x: x.pop(),
    lambda x: x.remove(1),
    lambda x: x.reverse(),
    lambda x: x.sort(),
]


# ---- freeze and thaw


@given(JSON)
def test_freezing_and_thawing_json_data_changes_nothing_of_it(value: Any) -> None:
    """`freeze` compares and serialises like the original; `thaw` returns plain data."""
    frozen = freeze(value)
    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert msgspec.json.encode(frozen) == msgspec.json.encode(value)
    assert thaw(frozen) == value
    assert _kinds(thaw(frozen)) <= {dict, list, str, int, float, bool, type(None)}
    assert copy.deepcopy(frozen) == value
    assert _kinds(copy.deepcopy(frozen)) == _kinds(thaw(frozen))
    assert pickle.loads(pickle.dumps(frozen)) == value
    assert freeze(frozen) is frozen


@given(st.one_of(JSON, JSON.map(freeze), JSON.map(lambda value: {"a": freeze(value)})))
def test_the_frozen_and_the_plain_copy_of_one_pass_are_those_of_two(value: Any) -> None:
    """With the same kinds of containers at every depth, and no container of the one in the other."""
    frozen, plain = frozen_and_plain(value)
    assert (frozen, plain) == (value, value)
    assert _kinds(frozen) == _kinds(freeze(value))
    assert _kinds(plain) == _kinds(thaw(value))


@given(JSON)
def test_frozen_json_data_cannot_be_changed_at_any_depth(value: Any) -> None:
    """Every dict and list inside refuses every way to change it."""
    for container in _containers(freeze(value)):
        for change in DICT_CHANGES if isinstance(container, dict) else LIST_CHANGES:
            before = copy.deepcopy(container)
            with pytest.raises(TypeError, match=r"read-only.*Rewrite"):
                change(container)
            assert container == before


@pytest.mark.parametrize("kind", [OrderedDict, lambda items: defaultdict(list, items)], ids=["ordered", "default"])
def test_special_kinds_of_dict_are_frozen_too(kind: Callable[[Any], dict[str, Any]]) -> None:
    """An `OrderedDict` as a payload leaves no reference that can change the event."""
    given_value = kind({"command": "ls", "deep": kind({"list": [1]})})
    for frozen in (Rewrite(given_value).input, ToolCall(tool_name="t", tool_call_id="1", input=given_value).input):
        given_value["command"] = "rm -rf /"
        assert frozen["command"] == "ls"
        with pytest.raises(TypeError, match="read-only"):
            frozen["deep"]["list"].append(2)
        given_value["command"] = "ls"


def test_special_kinds_of_list_and_tuples_are_frozen_too() -> None:
    """A subclass of list and a tuple become read-only lists."""

    class Rows(list[Any]):
        pass

    frozen = freeze({"rows": Rows([{"a": 1}]), "pair": ({"b": 2}, 3)})
    assert frozen == {"rows": [{"a": 1}], "pair": [{"b": 2}, 3]}
    for container in _containers(frozen):
        with pytest.raises(TypeError, match="read-only"):
            container.clear()


def test_foreign_objects_are_kept_and_deep_copies_copy_them() -> None:
    """An object that is no JSON data stays the same object in frozen data; only `deepcopy` copies it."""
    foreign = bytearray(b"x")
    frozen = freeze({"a": [foreign]})
    assert frozen["a"][0] is foreign
    assert thaw(frozen)["a"][0] is foreign
    assert copy.deepcopy(frozen)["a"][0] is not foreign
    assert freeze(foreign) is foreign


def test_frozen_data_is_matched_unpacked_and_copied_like_plain_data() -> None:
    """`match`, `{**x}`, `[*x]`, `|`, `.copy()` and `copy.copy` work, and the copies are plain."""
    params = BeforeToolCall(tool_name="t", params={"command": "ls", "args": [1, 2]}).params
    match params:
        case {"command": str(command), "args": [first, *_]}:
            assert (command, first) == ("ls", 1)
        case _:
            pytest.fail("did not match")
    assert isinstance(params, dict)
    for plain in ({**params}, params | {}, params.copy(), copy.copy(params)):
        assert type(plain) is dict
        plain["command"] = "other"
    args = params["args"]
    for copied in ([*args], args.copy(), copy.copy(args), args[:]):
        assert type(copied) is list
        copied.append(3)
    assert params == {"command": "ls", "args": [1, 2]}


# ---- events


def test_every_event_class_has_a_sample_here() -> None:
    """The tables of this file cover all events."""
    assert {type(event) for event in SAMPLES} == set(EVENTS)


@pytest.mark.parametrize("event", SAMPLES, ids=IDS)
def test_events_survive_json_in_camel_case(event: Event[Any]) -> None:
    """The wire form has the type and camelCase names, and reads back as the same event."""
    wire = json.loads(msgspec.json.encode(event))
    assert wire["type"] == event.type
    assert not [key for key in wire if "_" in key]
    assert msgspec.json.decode(msgspec.json.encode(event), type=type(event)) == event


@pytest.mark.parametrize("event", SAMPLES, ids=IDS)
def test_events_are_pickled_and_copied_as_events_that_are_read_only(event: Event[Any]) -> None:
    """Pickle and both copies give equal events, as frozen as the first."""
    for twin in (pickle.loads(pickle.dumps(event)), copy.deepcopy(event), copy.copy(event)):
        assert twin == event
        for name in event.__struct_fields__:
            for container in _containers(getattr(twin, name)):
                with pytest.raises(TypeError, match="read-only"):
                    container.clear()


@pytest.mark.parametrize("event", SAMPLES, ids=IDS)
def test_fields_of_events_are_neither_set_nor_deleted(event: Event[Any]) -> None:
    """Assigning and deleting raise, and the text names the answer to return instead."""
    for name in (*event.__struct_fields__, "type", "brand_new"):
        with pytest.raises(AttributeError, match="Rewrite"):
            setattr(event, name, None)
        with pytest.raises(AttributeError, match="Rewrite"):
            delattr(event, name)


def test_the_payload_of_an_event_is_cut_off_from_the_hand_that_gave_it() -> None:
    """A later change of the original does not change the event."""
    given_input: dict[str, Any] = {"a": {"b": [1]}}
    event = ToolCall(tool_name="t", tool_call_id="1", input=given_input)
    given_input["a"]["b"].append(2)
    assert event.input == {"a": {"b": [1]}}


def test_lists_given_for_tuples_become_tuples() -> None:
    """A program without a type checker cannot leave a list in an event."""
    messages: Any = [USER, ASSISTANT]
    results: Any = [RESULT]
    entries: Any = list(ENTRIES)
    attachments: Any = [Attachment(kind="image", file_name="f", mime_type="image/png", content="")]
    assert AgentEnd(messages=messages).messages == (USER, ASSISTANT)
    assert TurnEnd(turn_index=0, message=ASSISTANT, tool_results=results).tool_results == (RESULT,)
    event = SessionEvent(reason="start", entries=entries, messages_to_keep=messages, messages_to_summarize=messages)
    assert event.entries == ENTRIES
    assert event.messages_to_keep == event.messages_to_summarize == (USER, ASSISTANT)
    assert UserMessage(content="x", timestamp=0, attachments=attachments).attachments == tuple(attachments)
    assert AssistantMessage(content=[TextContent("x")], timestamp=0, provider="p", model="m").content == (
        TextContent("x"),
    )


def test_absent_values_are_left_out_but_session_files_are_written_as_null() -> None:
    """A field without a value has no key, except for the two session files and the flags of results."""
    assert json.loads(msgspec.json.encode(SessionEvent(reason="shutdown"))) == {
        "type": "session",
        "reason": "shutdown",
        "entries": [],
        "sessionFile": None,
        "previousSessionFile": None,
    }
    assert json.loads(msgspec.json.encode(ToolOutput("x"))) == {
        "content": [{"type": "text", "text": "x"}],
        "isError": False,
    }


@pytest.mark.parametrize(
    ("event", "route"),
    [
        (SAMPLES[0], "session:start"),
        (AgentStart(), "agent_start"),
        (ToolCall(tool_name="bash", tool_call_id="1", input={}), ("tool_call", "bash")),
        (BeforeToolCall(tool_name="bash", params={}), ("before_tool_call", "bash")),
        (AfterToolCall(tool_name="bash", params={}), ("after_tool_call", "bash")),
        (ToolResult(tool_name="bash", tool_call_id="1", input={}, content=""), ("tool_result", "bash")),
    ],
)
def test_the_route_of_an_event_names_its_row_and_tool(event: Event[Any], route: object) -> None:
    """Handlers are found by type, reason and tool."""
    assert event.route == route


# ---- content


@pytest.mark.parametrize("message", [USER, ASSISTANT, RESULT], ids=["user", "assistant", "result"])
def test_messages_survive_json(message: Message) -> None:
    """A message is identified by its role and reads back as it was."""
    wire = msgspec.json.encode(message)
    assert msgspec.json.decode(wire, type=Message) == message


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_entries_survive_json(entry: Entry) -> None:
    """A session entry is identified by its type and reads back as it was."""
    assert msgspec.json.decode(msgspec.json.encode(entry), type=Entry) == entry


@pytest.mark.parametrize(
    "content",
    [
        "hi",
        [TextContent("hi")],
        (TextContent("hi"),),
        [{"type": "text", "text": "hi"}],
        freeze([{"type": "text", "text": "hi"}]),
    ],
    ids=["str", "list", "tuple", "wire", "frozen wire"],
)
def test_every_form_of_content_is_handed_out_as_a_read_only_list_of_blocks(content: Any) -> None:
    """Text, blocks and blocks in wire form give the same content."""
    for owner in (
        ToolOutput(content),
        Replace(content=content),
        UserMessage(content=content, timestamp=0),
        ToolResultMessage(tool_call_id="1", tool_name="t", content=content, timestamp=0),
        ToolResult(tool_name="t", tool_call_id="1", input={}, content=content),
    ):
        blocks: Any = owner.content
        assert blocks == [TextContent("hi")]
        with pytest.raises(TypeError, match="read-only"):
            blocks.append(TextContent("more"))
        assert content_blocks(blocks) is blocks


@pytest.mark.parametrize("content", [None, 5, b"x", {"type": "text"}, [5], ["x"], [{"type": "video"}], [None]])
def test_what_is_no_content_is_refused(content: Any) -> None:
    """Anything but text and blocks raises a text with its type."""
    with pytest.raises(TypeError, match=r"content must be|not a content block"):
        ToolOutput(content)


def test_the_text_of_outputs_and_messages_leaves_other_blocks_out() -> None:
    """`text` joins the text blocks; an assistant message lists its tool calls; a str is one text block."""
    assert ToolOutput([TextContent("a"), ImageContent("", "image/png"), TextContent("b")]).text == "a\nb"
    assert ASSISTANT.text == "yes"
    assert [call.name for call in ASSISTANT.tool_calls] == ["bash"]
    said = AssistantMessage(content="yes", timestamp=0, provider="p", model="m")
    assert (said.content, said.text) == ((TextContent("yes"),), "yes")


def test_the_tokens_of_a_response_are_a_value() -> None:
    """Each count is a field; on the wire it is spelled as before, so that older session files are read."""
    message = msgspec.convert(
        {**msgspec.to_builtins(ASSISTANT), "usage": {"inputTokens": 7, "outputTokens": 5, "cacheReadTokens": 2}},
        AssistantMessage,
    )
    assert message.usage == Usage(input_tokens=7, output_tokens=5, cache_read_tokens=2)
    assert message.usage.total_tokens == 12
    assert msgspec.to_builtins(message)["usage"] == {"inputTokens": 7, "outputTokens": 5, "cacheReadTokens": 2}
    assert AssistantMessage(content="", timestamp=0, provider="p", model="m").usage is None
    mapping: Any = {"inputTokens": 7}
    with pytest.raises(TypeError, match="wants Usage"):
        AssistantMessage(content="", timestamp=0, provider="p", model="m", usage=mapping)


def test_every_message_has_its_text() -> None:
    """A handler need not know which kind of message it got."""
    assert [message.text for message in (USER, ASSISTANT, RESULT)] == ["hello", "yes", "out"]
    assert {kind for kind in get_args(Message) if not hasattr(kind, "text")} == set()


def test_what_a_tool_gets_is_called_input_everywhere() -> None:
    """Where a value has another name of its own, `input` is the same object."""
    call = ToolCallContent("1", "bash", {"command": "ls"})
    before = BeforeToolCall(tool_name="bash", params={"command": "ls"})
    after = AfterToolCall(tool_name="bash", params={"command": "ls"})
    asked = PermissionInput(agent_id="", session_key="", tool_name="", tool_call_id="", args={"a": 1}, reason="")
    assert call.input is call.arguments
    assert before.input is before.params
    assert after.input is after.params
    assert asked.input is asked.args


def test_payloads_inside_content_are_read_only() -> None:
    """Arguments and details are frozen like an event's input."""
    payloads: tuple[Any, ...] = (
        ASSISTANT.tool_calls[0].arguments,
        RESULT.details,
        ToolOutput("x", {}).details,
    )
    for payload in payloads:
        with pytest.raises(TypeError, match="read-only"):
            payload.clear()


# ---- answers


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Block(5), "Block"),  # type: ignore[arg-type]  # the mistake
        (lambda: Rewrite("x"), "whole new input"),  # type: ignore[arg-type]  # the mistake
        (lambda: Block(rule=5), "rule"),  # type: ignore[arg-type]  # the mistake
        (lambda: Ask("a", remedy=None), "remedy"),  # type: ignore[arg-type]  # the mistake
        (lambda: Ask(None), "Ask"),  # type: ignore[arg-type]  # the mistake
        (lambda: Ask("a", 5), "Ask"),  # type: ignore[arg-type]  # the mistake
        (lambda: Replace(is_error=None), "is_error"),  # type: ignore[arg-type]  # the mistake
        (lambda: Replace(content=None), "content"),  # type: ignore[arg-type]  # the mistake
        (lambda: Cancel(5), "Cancel"),  # type: ignore[arg-type]  # the mistake
        (lambda: Continue(" "), "words in it"),
        (lambda: Continue(None), "words in it"),  # type: ignore[arg-type]  # the mistake
        (lambda: SkipConversationRestore("no"), "Skip"),  # type: ignore[arg-type]  # the mistake
    ],
)
def test_answers_of_a_wrong_type_are_refused_where_they_are_made(make: Callable[[], object], text: str) -> None:
    """A wrong argument raises in the constructor, and the text names the answer."""
    with pytest.raises(TypeError, match=text):
        make()


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (Block(), "blocked by a hook"),
        (Block("", "h.py"), "blocked by a hook (h.py)"),
        (Block("no", "h.py"), "no (h.py)"),
        (Block("boom", "h.py", "failed"), "not run, because hook h.py failed: boom"),
        (Block("late", "h.py", "timed_out"), "not run, because hook h.py gave no verdict: late"),
        (Block("rm?", "h.py", "user"), "rm?: the user said no (asked by h.py)"),
        (Block("rm?", "h.py", "nobody"), "rm?: no person is here to answer (asked by h.py)"),
        (Block("bad", "h.py", "schema"), "bad"),
        (Block("no", "g", "guard", "rm-rf"), "no (g (rm-rf))"),
        (Block("no", "g", "guard", "rm-rf", "ask Ann"), "no; ask Ann (g (rm-rf))"),
        (Block("", "h.py", remedy="ask Ann"), "blocked by a hook; ask Ann (h.py)"),
        (Block("rm?", "g", "user", "rm-rf"), "rm?: the user said no (asked by g (rm-rf))"),
        (Block("rm?", "g", "nobody", "rm-rf"), "rm?: no person is here to answer (asked by g (rm-rf))"),
    ],
)
def test_the_text_of_a_block_tells_the_causes_apart(block: Block, text: str) -> None:
    """A refusal, the absence of a person, a broken hook and a veto have different texts."""
    assert str(block) == text


def test_a_replace_knows_which_fields_were_set() -> None:
    """To clear `details` is a change; to leave them out is not."""
    assert Replace().changes() == {}
    assert Replace(details=None).changes() == {"details": None}
    assert set(Replace(content="x", is_error=False).changes()) == {"content", "is_error"}


# ---- error reports


class Unshowable(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


def test_reports_do_not_fail_on_what_cannot_be_shown() -> None:
    """An exception whose `__str__` and `__repr__` raise is still reported by its type."""
    exc = Unshowable()
    assert "Unshowable" in describe(exc)
    assert "Unshowable" in shown(exc)
    assert "Unshowable" in traceback_text(exc)
    assert shown("x" * 100, 10) == "'xxxxxxxx…"


def test_a_traceback_that_cannot_be_formatted_is_replaced_by_the_error() -> None:
    """When an exception breaks the formatting, its description replaces the traceback."""

    class Broken(Exception):
        @property
        def __cause__(self) -> Any:  # type: ignore[override]  # the breakage
            raise RuntimeError("no cause")

    assert traceback_text(Broken("x")) == "Broken: x"


def test_errors_are_described_by_type_and_text() -> None:
    """The text of our own errors stands alone, and other errors are named by their type."""
    assert describe(HookUsageError("do this")) == "do this"
    assert describe(ValueError("x")) == "ValueError: x"
    assert describe(ValueError()) == "ValueError"
    assert place_in(ValueError(), "nowhere.py") == (None, None)


def test_a_hook_error_reads_as_one_line() -> None:
    """The line has hook, handler, event with its reason, and error."""
    error = HookError(hook_path="h.py", handler="f", event="session", reason="start", error="boom", outcome="continued")
    assert str(error) == "h.py: f on session (start): boom"
    assert str(msgspec.structs.replace(error, reason=None)) == "h.py: f on session: boom"


def _kinds(value: Any) -> set[type]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {type(value)}.union(*(_kinds(item) for item in inner))


def _containers(value: Any) -> list[Any]:
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for item in inner for found in _containers(item))]


def test_a_tool_result_has_its_text_at_hand() -> None:
    """`text` leaves images out, as in an output."""
    content: list[TextContent | ImageContent] = [TextContent("one"), ImageContent("", "image/png"), TextContent("two")]
    assert ToolResult(tool_name="x", tool_call_id="1", input={}, content=content).text == "one\ntwo"
