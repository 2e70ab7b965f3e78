"""Only plain texts leave the guards, so that other programs can encode and pickle what they get."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from agent_hooks.effects import CallEffects
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.base import Finding
from agent_hooks.guards.recorder import Recorder
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.guards.shell.words import Word
from agent_hooks.pipeline.guarding import ask_guards
from agent_hooks.values.answers import Block
from agent_hooks.values.effects import Discard, Effects, Kill, PathEffect, Place, Privilege, Program, Transfer
from guard_corpus import CORPORA, call, calls_of

# One row of so many is judged here: `guard check` judges all of them in another test.  Fewer are followed with a trace.
_JUDGED, _TRACED = 4, 40


def odd_texts(value: Any, at: str = "") -> Iterator[str]:
    """Yield the places of all texts in a value whose type is not `str` itself."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from odd_texts(getattr(value, name), f"{at}.{name}")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from odd_texts(key, f"{at} key")
            yield from odd_texts(each, f"{at}[{key!r}]")
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from odd_texts(each, f"{at}[{number}]")
    elif isinstance(value, str) and type(value) is not str:
        yield f"{at}: {type(value).__name__}"


@pytest.mark.parametrize("corpus", CORPORA)
def test_the_effects_of_each_row_are_plain_and_can_be_sent(corpus: str) -> None:
    """They come back from JSON and from pickle as they were."""
    for tool, given in calls_of(corpus):
        found = CallEffects("/home/dev/app", home="/home/dev", root="/home/dev/app")(tool, given)
        assert list(odd_texts(found)) == [], given
        assert msgspec.json.decode(msgspec.json.encode(found), type=Effects) == found
        assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("first", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, _JUDGED))])
@pytest.mark.parametrize("corpus", CORPORA)
def test_the_answers_to_rows_are_plain_and_can_be_sent(corpus: str, first: int) -> None:
    """The answer of the guards, the programs that they found, and for some rows the findings and the traces."""
    guards = builtin_guards()
    for number, (tool, given) in enumerate(calls_of(corpus)[first::_JUDGED]):
        judged = call(tool, **given)
        answer = ask_guards(guards, judged, lambda error: None)
        answers = [answer] if isinstance(answer, Block) else answer
        programs = [getattr(guard, "programs", ()) for guard in guards]
        assert list(odd_texts([answers, programs])) == [], given
        assert all(msgspec.json.encode(each) and pickle.loads(pickle.dumps(each)) == each for each in answers)
        if not number % (_TRACED // _JUDGED):
            finder = CommandSafetyGuard()
            command = given.get("command")
            traced = finder.follow(command, judged, trace=True) if isinstance(command, str) else None
            followed = [] if traced is None else [traced.trace, traced.programs, traced.findings]
            assert list(odd_texts([finder.find(judged), finder.lines(judged), finder.runs(judged), followed])) == []


def test_no_kind_of_effect_keeps_the_type_of_a_word() -> None:
    """A rule may hand over a word for any text of any effect."""
    word = Word("x")
    recorder = Recorder()
    recorder.path(PathEffect(word, word, "write", word))
    recorder.program(Program(word, (word, word), word, (word,)))
    recorder.transfer(Transfer(word, "out", word, word))
    for other in (Discard(word, word), Kill(word, word), Privilege(word, word)):
        recorder.other(other)
    recorder.unknown("opaque", word, word)
    found = recorder.effects(Place(word, word, word))
    assert list(odd_texts(found)) == []
    assert found.programs == (Program("x", ("x", "x"), "x", ("x",)),)


def test_no_finding_keeps_the_type_of_a_word() -> None:
    """A rule may hand over a word for its reason, and for the part of the call."""
    interpreter = CommandSafetyGuard().follow("ls", call("bash", command="ls"))
    interpreter.report(Word("rule"), Word("reason"), Word("culprit"))
    assert interpreter.findings == [Finding("rule", "reason", "culprit")]
    assert list(odd_texts(interpreter.findings)) == []
