"""The inbox: its limits for each source, its threads, and the order of its messages."""

from __future__ import annotations

import threading

import anyio
import pytest
from anyio import to_thread

from agent_hooks import Attachment, SendError
from agent_hooks.host.runs import Inbox, InboxLimits, Injected
from support import PATIENCE

pytestmark = pytest.mark.anyio


class Waiter:
    """Counts the calls of `arrived`, and notes their thread."""

    def __init__(self) -> None:
        self.arrived = anyio.Event()
        self.threads: set[int] = set()

    def __call__(self) -> None:
        self.threads.add(threading.get_ident())
        self.arrived.set()


class SteppedTime:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_message_from_a_thread_wakes_the_event_loop() -> None:
    """`arrived` is called on the event loop."""
    waiter = Waiter()
    inbox = Inbox(waiter)
    image = Attachment(kind="image", file_name="a.png", mime_type="image/png", content="aGk=")
    threading.Thread(target=inbox.put, args=("hello", [image], "hook.py")).start()
    with anyio.fail_after(PATIENCE):
        await waiter.arrived.wait()
    assert waiter.threads == {threading.get_ident()}
    assert inbox.take() == (Injected("hello", (image,), "hook.py"),)
    assert inbox.take() == ()


async def test_a_message_from_a_task_is_there_at_once_and_wakes_later() -> None:
    """Sending never runs other code in the middle of the sender's."""
    waiter = Waiter()
    inbox = Inbox(waiter)
    inbox.put("hello")
    assert (len(inbox), waiter.arrived.is_set()) == (1, False)
    with anyio.fail_after(PATIENCE):
        await waiter.arrived.wait()


async def test_a_message_is_there_when_the_event_loop_is_woken_for_it() -> None:
    """Otherwise the agent would find no message and wait for the next one."""
    seen: list[int] = []
    inbox = Inbox(lambda: seen.append(len(inbox)), limits=InboxLimits(count=500))

    def send() -> None:
        for index in range(500):
            inbox.put(str(index))

    await to_thread.run_sync(send)
    with anyio.fail_after(PATIENCE):
        while len(seen) < 500:
            await anyio.sleep(0.001)
    assert [number for number, waiting in enumerate(seen, 1) if waiting < number] == []


async def test_nothing_is_lost_or_mixed_up_when_many_threads_send_at_once() -> None:
    """Each sender's messages come in its order, each once."""
    waiter = Waiter()
    inbox = Inbox(waiter, limits=InboxLimits(rate=100))
    taken: list[Injected] = []

    def send(number: int) -> None:
        for index in range(100):
            inbox.put(str(index), source=f"hook{number}")

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(to_thread.run_sync, send, number)
        with anyio.fail_after(PATIENCE):
            while len(taken) < 800:
                await waiter.arrived.wait()
                waiter.arrived = anyio.Event()
                taken += inbox.take()
    for number in range(8):
        assert [each.text for each in taken if each.source == f"hook{number}"] == [str(index) for index in range(100)]


async def test_each_source_has_so_many_messages_waiting_and_no_more() -> None:
    """The refused message is not queued; other sources can send, and after reading, so can this one."""
    inbox = Inbox(Waiter(), limits=InboxLimits(count=2))
    for source in ("a.py", "a.py", None, None):
        inbox.put("x", source=source)
    for source in ("a.py", None):
        with pytest.raises(SendError, match="2 messages of this sender wait for the agent already; send one message"):
            inbox.put("y", source=source)
    inbox.put("x", source="b.py")
    assert [each.text for each in inbox.take()] == ["x"] * 5
    inbox.put("y", source="a.py")


async def test_each_source_has_so_many_characters_waiting_and_no_more() -> None:
    """Text, attachments and extracted texts count; the error has the number and the remedy."""
    inbox = Inbox(Waiter(), limits=InboxLimits(size=1000))
    with pytest.raises(
        SendError, match=r"it has 1,001 characters, with attachments, and the limit is 1,000; save it in a"
    ):
        inbox.put("x" * 1001, source="a.py")
    document = Attachment(
        kind="document", file_name="a", mime_type="text/plain", content="A" * 400, extracted_text="b" * 200
    )
    inbox.put("x" * 400, [document], "a.py")
    with pytest.raises(SendError, match="it has 1,001 characters with the 1 that wait"):
        inbox.put("y", source="a.py")
    inbox.put("y", source="b.py")
    assert len(inbox) == 2


async def test_a_hook_may_send_so_many_in_a_time_and_a_person_as_many_as_they_like() -> None:
    """A hook that answers its own messages is slowed down."""
    time = SteppedTime()
    inbox = Inbox(Waiter(), limits=InboxLimits(rate=3, period=60), now=time)
    for _ in range(3):
        inbox.put("x", source="a.py")
        inbox.take()
        time.now += 10
    with pytest.raises(SendError, match="one hook may send 3 messages in 60 s; the next can be sent in 30 s"):
        inbox.put("x", source="a.py")
    inbox.put("x", source="b.py")
    for _ in range(10):
        inbox.put("x")
    inbox.take()
    time.now += 30
    inbox.put("x", source="a.py")
    with pytest.raises(SendError, match="the next can be sent in 10 s"):
        inbox.put("x", source="a.py")


async def test_after_the_end_nothing_is_taken_in_and_what_is_left_is_handed_back() -> None:
    """The host can then warn of the messages that were not delivered."""
    inbox = Inbox(Waiter())
    inbox.put("left")
    assert inbox.close() == (Injected("left"),)
    with pytest.raises(SendError, match="the session has ended"):
        inbox.put("late", source="a.py")
    assert inbox.take() == ()


def test_a_thread_that_outlives_the_event_loop_is_told_so(anyio_backend: str) -> None:
    """Sending raises an error, because the event loop cannot be woken."""

    async def main() -> Inbox:
        return Inbox(Waiter())

    inbox = anyio.run(main, backend=anyio_backend)
    for _ in range(2):
        with pytest.raises(SendError, match="the session has ended"):
            inbox.put("late", source="a.py")
