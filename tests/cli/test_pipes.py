"""stdin as lines, stdout as records: of any size, and with either end closing first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from threading import Thread

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.cli.rpc.pipes import LineReader, RecordWriter, read_chunks
from support import PATIENCE


def lines_of(chunks: list[bytes], limit: int) -> list[tuple[int, bytes | None]]:
    """Return all that a cutter yields."""
    lines = LineReader(limit)
    return [*(line for chunk in chunks for line in lines.feed(chunk)), *lines.end()]


@given(st.lists(st.binary(max_size=30).map(lambda part: part.replace(b"x", b"\n"))))
def test_lines_do_not_depend_on_how_their_bytes_arrive(chunks: list[bytes]) -> None:
    """Half lines are joined, and a line that is too long does not affect the next."""
    whole = b"".join(chunks)
    expected = [(number, line if len(line) <= 8 else None) for number, line in enumerate(whole.split(b"\n"), 1)]
    if expected[-1][1] == b"":
        expected.pop()
    assert lines_of(chunks, 8) == expected


def test_a_line_that_is_too_long_is_told_before_it_ends_and_is_not_kept() -> None:
    """A client that never sends a newline fills no memory."""
    lines = LineReader(100)
    told = [line for _ in range(1000) for line in lines.feed(b"x" * 99)]
    assert told == [(1, None)]
    assert list(lines.end()) == []
    assert list(lines.feed(b"x\nnext\n")) == [(2, b"next")]


def test_only_a_newline_ends_a_line() -> None:
    """Other separators are characters of a string like any other."""
    line = '"a\u2028b\u2029c\x85d\x0be\rf"'.encode()
    assert lines_of([line + b"\n"], 100) == [(1, line)]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give a pipe: its reading and its writing end."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass


async def test_chunks_are_read_until_the_end(pipe: tuple[int, int]) -> None:
    """More bytes come than a pipe holds, and none are read ahead of the reader."""
    source, sink = pipe
    data = os.urandom(300_000)

    def write() -> None:
        with os.fdopen(sink, "wb") as file:
            file.write(data)

    thread = Thread(target=write)
    thread.start()
    assert b"".join([chunk async for chunk in read_chunks(source)]) == data
    thread.join()


async def test_a_descriptor_that_cannot_be_read_is_at_its_end(pipe: tuple[int, int]) -> None:
    """Nothing comes, nothing fails."""
    assert [chunk async for chunk in read_chunks(pipe[1])] == []


def test_the_event_loop_does_not_wait_for_what_is_never_sent(pipe: tuple[int, int], anyio_backend: str) -> None:
    """The loop ends, and later input is dropped."""

    async def read_a_little() -> None:
        with anyio.move_on_after(0.01):
            async for _ in read_chunks(pipe[0]):
                raise AssertionError("nothing was sent")

    anyio.run(read_a_little, backend=anyio_backend)
    os.write(pipe[1], b"too late")


PROGRAM = """\
import sys, anyio
from agent_hooks.cli.streams import ReservedStdout
from agent_hooks.cli.rpc.pipes import RecordWriter

async def main():
    with ReservedStdout() as stdout:
        writer = RecordWriter(stdout.duplicate())
        await work(writer)
        writer.close(20)

{body}
anyio.run(main, backend=sys.argv[1])
"""


async def test_a_pipe_that_does_not_block_is_made_to(pipe: tuple[int, int]) -> None:
    """Some programs leave theirs so, and nothing that has not come yet is an end."""
    for end in pipe:
        os.set_blocking(end, False)
    writer = RecordWriter(pipe[1])
    seen = b""

    async def read() -> None:
        nonlocal seen
        async for chunk in read_chunks(pipe[0]):
            seen += chunk

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.lowlevel.checkpoint()
        for _ in range(100):
            writer.send("x" * 10_000)
        with anyio.fail_after(PATIENCE):
            while len(seen) < 100 * 10_003:
                await anyio.lowlevel.checkpoint()
        assert writer.close(20)
        os.close(pipe[1])
    assert seen == b'"' + b'"\n"'.join([b"x" * 10_000] * 100) + b'"\n'


def run_program(body: str, backend: str, **options: object) -> subprocess.Popen[str]:
    """Start a program with a writer on its stdout."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body), backend], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def test_records_of_many_threads_come_whole_and_each_in_its_order(anyio_backend: str) -> None:
    """Other output of the process is not on the wire."""
    body = """
from threading import Thread

def tell(writer, thread):
    for number in range(200):
        print("noise")
        writer.send({"thread": thread, "number": number, "pad": "\\u2028\\u2029\\x85" * 50})

async def work(writer):
    threads = [Thread(target=tell, args=(writer, each)) for each in range(8)]
    for each in threads: each.start()
    for each in threads: await anyio.to_thread.run_sync(each.join)
"""
    run = run_program(body, anyio_backend)
    printed, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0
    assert len(printed.splitlines()) == 1600, "which splits at U+2028 too"
    records = [json.loads(line) for line in printed.splitlines()]
    for thread in range(8):
        assert [record["number"] for record in records if record["thread"] == thread] == list(range(200))
    assert records[0]["pad"] == "\u2028\u2029\x85" * 50


def test_a_client_that_closes_its_end_is_gone(anyio_backend: str) -> None:
    """`gone` is set, and later records are dropped."""
    body = """
async def work(writer):
    with anyio.fail_after(60):
        while not writer.gone.is_set():
            writer.send("x" * 1000)
            await anyio.sleep(0.001)
    writer.send("more")
"""
    run = run_program(body, anyio_backend)
    assert run.stdout is not None
    run.stdout.close()
    assert run.wait(timeout=PATIENCE) == 0


async def test_a_client_that_has_stopped_reading_is_gone_in_the_end(pipe: tuple[int, int]) -> None:
    """No thread waits for it, and later records take no memory."""
    source, sink = pipe
    writer = RecordWriter(sink, max_unread=2**20, patience=0)
    with anyio.fail_after(PATIENCE):
        while not writer.gone.is_set():
            writer.send("x" * 2**18)
            await anyio.lowlevel.checkpoint()
    writer.send("dropped")
    assert not writer.close(20)
    # The writing thread can end.
    os.close(source)
    assert writer.broken is None


async def test_a_client_that_is_slow_gets_everything(pipe: tuple[int, int]) -> None:
    """However much waits, as long as it reads."""
    source, sink = pipe
    writer = RecordWriter(sink, max_unread=0)
    for number in range(100):
        writer.send(f"{number:03}" + "x" * 10_000)
    seen = b""

    async def read() -> None:
        nonlocal seen
        async for chunk in read_chunks(source):
            seen += chunk

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        assert await anyio.to_thread.run_sync(writer.close, 20)
        os.close(sink)
    assert [line[:4] for line in seen.split()] == [b'"%03d' % number for number in range(100)]
    assert not writer.gone.is_set()
