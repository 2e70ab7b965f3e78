"""First uses: patterns and tables that are made when they are needed, and the time of it, which counts for no call."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import select
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

from agent_hooks import guards
from agent_hooks.guards import lazy
from agent_hooks.guards.lazy import LazyPattern, lazy_pattern, read_once, warmed, warming
from agent_hooks.guards.shell.limit import Limit, _waits
from agent_hooks.guards.shell.script import Unreadable


class FakeClock:
    """A clock that is set by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fresh(program: str) -> str:
    """Run a program in a new process that has used no pattern yet, and return its output."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- patterns


def test_a_lazy_pattern_answers_as_a_compiled_one_at_the_first_use_and_later() -> None:
    """Each method is asked twice of a new pattern: the first call compiles it, the second finds it compiled."""
    text, given = r"(a)(\d)?", "xA1 a2"
    calls: list[Callable[[re.Pattern[str] | LazyPattern], object]] = [
        lambda each: each.search(given, 2).span(),  # type: ignore[union-attr]  # it matches
        lambda each: each.match(given, 1, 2).groups(),  # type: ignore[union-attr]  # it matches
        lambda each: each.match(given),
        lambda each: each.fullmatch(given, 4).groups(),  # type: ignore[union-attr]  # it matches
        lambda each: each.findall(given, 0, 3),
        lambda each: [match.span() for match in each.finditer(given, 2)],
        lambda each: each.sub(r"<\1>", given, 1),
        lambda each: each.sub(lambda match: match[0] * 2, given),
    ]
    for call in calls:
        made = lazy_pattern(text, re.IGNORECASE)
        expected = call(re.compile(text, re.IGNORECASE))
        assert [call(made), call(made)] == [expected, expected]


def test_a_lazy_pattern_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`re` has a cache of its own, which is small, and is not asked a second time."""
    compiled: list[str] = []

    def compile_(text: str, flags: int) -> re.Pattern[str]:
        compiled.append(text)
        return real(text, flags)

    real = re.compile
    monkeypatch.setattr(re, "compile", compile_)
    pattern = lazy_pattern("a+")
    assert compiled == []
    for _ in range(3):
        assert pattern.search("caat")
        assert pattern.fullmatch("aa")
    assert compiled == ["a+"]


def test_every_lazy_pattern_of_the_guards_compiles() -> None:
    """A mistake in a pattern is found here, and not at the first call that needs it."""
    for module in pkgutil.walk_packages(guards.__path__, f"{guards.__name__}."):
        importlib.import_module(module.name)
    found = [each for each in gc.get_objects() if isinstance(each, LazyPattern)]
    assert len(found) > 150
    for each in found:
        each.compile()


def test_the_import_of_the_guards_compiles_no_pattern_and_reads_no_table() -> None:
    """Counted, and not timed: a pattern of the guards that is compiled at import is named here."""
    out = fresh(
        """
        import re, sys
        made = []
        real = re._compiler.compile if hasattr(re, "_compiler") else re.sre_compile.compile
        def count(text, flags=0):
            frame = sys._getframe(1)
            while frame.f_code.co_filename == re.__file__:
                frame = frame.f_back
            made.append((frame.f_globals.get("__name__", ""), text))
            return real(text, flags)
        (re._compiler if hasattr(re, "_compiler") else re.sre_compile).compile = count
        import agent_hooks.guards.shell, agent_hooks.guards.paths
        re.compile("counted")
        print([each for each in made if each[0].startswith("agent_hooks.guards") or each[1] == "counted"])
        parts = "files git packages code network systems".split()
        print([each for each in parts if f"agent_hooks.guards.shell.programs.{each}" in sys.modules])
        """
    )
    assert out.splitlines() == ["[('__main__', 'counted')]", "[]"]


# ---- time


def test_first_uses_are_added_up_and_one_inside_of_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a first use is that of the processor."""
    clock = FakeClock()
    monkeypatch.setattr(lazy, "thread_time", clock)
    before = warmed()
    with warming():
        clock.now += 1
        with warming():
            clock.now += 2
    clock.now += 4
    assert warmed() - before == pytest.approx(3)


def test_a_table_is_read_once_and_its_time_counts_as_a_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second use costs nothing, and a reading that fails is made again."""
    clock = FakeClock()
    monkeypatch.setattr(lazy, "thread_time", clock)
    reads: list[int] = []

    @read_once
    def table() -> str:
        reads.append(1)
        clock.now += 1
        if len(reads) == 1:
            raise OSError("no table")
        return "rows"

    before = warmed()
    with pytest.raises(OSError, match="no table"):
        table()
    assert [table(), table()] == ["rows", "rows"]
    assert len(reads) == 2
    assert warmed() - before == pytest.approx(2)


def test_first_uses_do_not_count_against_the_time_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work of the call's own does."""
    processor, clock = FakeClock(), FakeClock()
    monkeypatch.setattr(lazy, "thread_time", processor)
    limit = Limit(0.2, processor=processor, clock=clock)
    with warming():
        processor.now = clock.now = 5
    limit.check()
    processor.now = clock.now = 5.19
    limit.check()
    processor.now = clock.now = 5.21
    with pytest.raises(Unreadable):
        limit.check()


def test_a_trivial_command_is_decidable_where_each_first_use_takes_long() -> None:
    """The clocks of a new process stand still, but for a second with each pattern and row of the table."""
    out = fresh(
        r"""
        import re
        from agent_hooks.guards import lazy, builtin_guards
        from agent_hooks.guards.base import GuardedCall
        from agent_hooks.guards.shell import CommandSafetyGuard, limit
        from agent_hooks.guards.shell.programs import rows
        now, uses = [0.0], []
        def clock():
            return now[0]
        def slow(real):
            def made(*given):
                uses.append(given[0])
                now[0] += 1
                return real(*given)
            return made
        lazy.re = type("re", (), {"compile": staticmethod(slow(re.compile))})
        rows.Row.__init__ = slow(rows.Row.__init__)
        lazy.thread_time = clock
        limit.Limit.__init__.__kwdefaults__.update(processor=clock, clock=clock)
        for command in (r"\agent-hooks trust", "git status && cp a b"):
            call = GuardedCall(tool_name="bash", input={"command": command}, cwd="/p", home="/h")
            print([each.undecidable for each in CommandSafetyGuard().find(call)])
        print(len(uses) > 10)
        """
    )
    assert out.splitlines() == ["[False]", "[]", "True"]


def test_a_look_up_in_which_the_thread_does_not_wait_is_no_wait() -> None:
    """Other programs had the processor for a minute; the thread gave it up for none of it."""
    processor, clock = FakeClock(), FakeClock()
    limit = Limit(0.2, processor=processor, clock=clock, waits=lambda: 7)

    def slow(path: str) -> str:
        clock.now += 60
        return path

    for _ in range(3):
        assert limit.look_up(slow, "/a") == "/a"
    processor.now = 0.19
    limit.check()


@pytest.mark.parametrize("counted", [True, False])
def test_a_look_up_that_waits_for_the_disk_counts_by_the_clock(*, counted: bool) -> None:
    """So does each look-up on a system that does not count the waits of a thread."""
    processor, clock, waits = FakeClock(), FakeClock(), [0]
    limit = Limit(0.2, processor=processor, clock=clock, waits=lambda: waits[0] if counted else None)

    def slow(path: str) -> str:
        clock.now += 0.15
        waits[0] += 1
        return path

    limit.look_up(slow, "/a")
    limit.check()
    limit.look_up(slow, "/b")
    with pytest.raises(Unreadable):
        limit.look_up(slow, "/c")


def test_many_quick_look_ups_count_by_the_clock() -> None:
    """A command that was made to ask about thousands of paths ends."""
    processor, clock = FakeClock(), FakeClock()
    limit = Limit(0.2, processor=processor, clock=clock, waits=lambda: 0)

    def quick(path: str) -> str:
        clock.now += 0.0005
        return path

    asked: list[str] = []

    def ask() -> None:
        for number in range(1000):
            asked.append(limit.look_up(quick, f"/{number}"))

    with pytest.raises(Unreadable):
        ask()
    assert 395 <= len(asked) <= 405


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the waits of a thread")
def test_a_wait_of_this_thread_is_seen() -> None:
    """The real count of the system: it rises with a real wait, and not with work."""
    reader, writer = os.pipe()
    before = _waits()
    assert before is not None
    # Nothing is written, so this thread gives up the processor until the time is over.
    assert select.select([reader], [], [], 0.01) == ([], [], [])
    os.close(reader)
    os.close(writer)
    after = _waits()
    assert after is not None
    assert after > before
