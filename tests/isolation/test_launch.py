"""The start of a hook's process, and its output."""

from __future__ import annotations

import os
import resource

import pytest

from agent_hooks.isolation.launch import launch, own_launch
from agent_hooks.isolation.output import Output

MANY = 40


def descriptors() -> set[str]:
    """Return the descriptors of this process."""
    return set(os.listdir("/dev/fd"))


def test_a_start_without_descriptors_leaves_none_open() -> None:
    """The agent has so many files open that the start fails, wherever the limit lies."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A limit is about numbers, so no lower one may be free.
    highest = max(map(int, descriptors()))
    given = [os.open(os.devnull, os.O_RDONLY)]
    while given[-1] < highest:
        given.append(os.dup(given[0]))
    before = descriptors()
    highest = max(map(int, before))
    failures = 0
    for room in range(MANY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + room, hard))
        try:
            started = launch(own_launch(), 1)
        except OSError:
            failures += 1
        else:
            started.end()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert len(descriptors()) == len(before), room
    for each in given:
        os.close(each)
    assert 0 < failures < MANY


def test_output_without_an_end_of_line_is_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """A hook that prints a dot a second would otherwise fill the memory."""
    output = Output("hook.py")
    for _ in range(100):
        output.feed(b"." * 500)
    shown = capsys.readouterr().err
    assert shown.count(".") > 40_000
    assert all(len(line) < 10_000 for line in shown.splitlines())
