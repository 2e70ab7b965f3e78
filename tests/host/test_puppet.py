"""The puppet: prompts into turns, turns into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import AssistantMessage, CompactionEntry, ModelError, ToolResultMessage, UserMessage
from agent_hooks.host.exchanges import summary_message
from agent_hooks.host.model import SUMMARY_PREFIX, SUMMARY_SUFFIX, ModelRequest, ToolOffer, collect
from agent_hooks.host.models import open_model
from agent_hooks.host.models.puppet import HINT, Puppet, parse
from agent_hooks.values.content import Message

pytestmark = pytest.mark.anyio


async def respond(*messages: Message, tools: tuple[ToolOffer, ...] = ()) -> AssistantMessage:
    """Ask the puppet for its next response."""
    request = ModelRequest(system=(), messages=messages, tools=tools)
    return await collect(Puppet(), request, lambda _: None)


def says(text: str) -> UserMessage:
    """Return a message of the person."""
    return UserMessage(content=text, timestamp=0)


async def test_each_line_of_a_block_is_a_call_of_one_turn() -> None:
    """Bare arguments fill the tool's main argument, JSON passes as it is."""
    message = await respond(says('Look.\n@bash ls -la\n@read a b.txt\n@write {"path": "x"}\n@ls\n---\n@bash pwd'))

    assert message.text == "Look.\n"
    assert message.stop_reason == "tool_use"
    calls = [(call.name, dict(call.arguments)) for call in message.tool_calls]
    assert calls == [
        ("bash", {"command": "ls -la"}),
        ("read", {"path": "a b.txt"}),
        ("write", {"path": "x"}),
        ("ls", {}),
    ]
    assert len({call.id for call in message.tool_calls}) == 4


async def test_the_second_block_is_the_second_turn_and_the_answer_lists_the_results() -> None:
    """The messages since the prompt show which turn comes next."""
    prompt = says("@bash one\n---\n@bash two\n---\nThat was it.")
    first = await respond(prompt)
    result = ToolResultMessage(
        tool_call_id=first.tool_calls[0].id, tool_name="bash", content="1\n2", timestamp=0, is_error=True
    )

    second = await respond(prompt, first, result)
    assert [call.arguments["command"] for call in second.tool_calls] == ["two"]

    last = await respond(prompt, first, result, second)
    assert last.tool_calls == ()
    assert last.text == "That was it.\n1. bash one (error)\n   1\n   2\n2. bash two (error)\n   no result\n"


async def test_an_earlier_prompt_does_not_count() -> None:
    """Only the messages since the last prompt decide the turn."""
    first = await respond(says("@bash one"))
    message = await respond(says("@bash one"), first, says("@bash again"))
    assert message.tool_calls[0].arguments == {"command": "again"}


async def test_a_summary_is_not_a_prompt() -> None:
    """The calls that a summary quotes are not made again."""
    text = "The person said:\n@bash rm notes"
    entry = CompactionEntry(timestamp="2026", summary=text, first_kept_entry_index=1, tokens_before=1)
    message = await respond(summary_message(entry))
    assert not message.tool_calls
    assert message.text == f"{HINT}\n"


async def test_a_prompt_that_reads_like_a_summary_is_a_prompt() -> None:
    """The person may paste the text of a summary."""
    message = await respond(says(f"{SUMMARY_PREFIX}The person said:\n@bash ls\n{SUMMARY_SUFFIX}"))
    assert [call.name for call in message.tool_calls] == ["bash"]


async def test_without_calls_it_says_its_words_or_explains_itself() -> None:
    """Text without calls is the answer, and an empty prompt gets a hint."""
    assert (await respond(says("hello\n\nyou"))).text == "hello\n\nyou\n"
    assert (await respond(says("---"))).text == f"{HINT}\n"
    assert (await respond()).text == f"{HINT}\n"


async def test_a_custom_tool_gets_its_only_text_argument() -> None:
    """Its schema names it; without one such argument the text passes unchanged, and is refused later."""
    one = ToolOffer("say", "", {"properties": {"words": {"type": "string"}}, "required": ["words"]})
    two = ToolOffer("add", "", {"properties": {"a": {"type": "number"}}, "required": ["a"]})
    write = ToolOffer("write", "", {"required": ["path", "content"]})
    message = await respond(says("@say hi\n@add 1\n@unknown x\n@write oops\n@bash {broken"), tools=(one, two, write))
    assert [call.invalid or dict(call.arguments) for call in message.tool_calls] == [
        {"words": "hi"},
        "1",
        {"argument": "x"},
        "oops",
        "{broken",
    ]


async def test_long_results_and_arguments_are_cut_in_the_answer() -> None:
    """The list stays readable."""
    prompt = says(f"@bash {'x' * 300}")
    first = await respond(prompt)
    text = "\n".join(map(str, range(50)))
    result = ToolResultMessage(tool_call_id=first.tool_calls[0].id, tool_name="bash", content=text, timestamp=0)
    lines = (await respond(prompt, first, result)).text.splitlines()
    assert lines[0] == f"1. bash {'x' * 94}…"
    assert lines[-1] == "   … 30 more lines"


@given(st.text(st.sampled_from('@-ab {}":\n '), max_size=60))
def test_any_prompt_parses_and_no_call_is_lost(prompt: str) -> None:
    """Each line in the form of a call is a call, in its order."""
    calls = [call for turn in parse(prompt) for call in turn.calls]
    lines = [line.strip() for line in prompt.splitlines()]
    expected = [line for line in lines if line.startswith("@") and line[1:2].isalpha()]
    assert [tool for tool, _ in calls] == [line[1:].split()[0] for line in expected if not bad_name(line)]


def bad_name(line: str) -> bool:
    """Tell whether a line starts like a call but has no valid tool name."""
    return not line[1:].split()[0].replace("-", "").replace(".", "").isalnum()


def test_unknown_models_and_arguments_are_named() -> None:
    """The error names the known models."""
    with pytest.raises(ModelError, match="no model 'pupet'; did you mean 'puppet'"):
        open_model("pupet")
    with pytest.raises(ModelError, match="takes no argument"):
        open_model("puppet:x")
