"""Run collected tests in forks of this process, several forks at once, each test with a limit in seconds."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import Literal, NamedTuple, NoReturn

import pytest

_PREPARING = 60.0
"""Seconds that a job may take before its first test."""


class Job(NamedTuple):
    """The work of one fork: to prepare, then to run the tests until one fails."""

    tests: list[pytest.Item]
    limits: list[float]
    """The seconds that each test may take."""
    prepare: Callable[[], object]
    passes: Callable[[pytest.Item, pytest.Item | None], bool]
    """Runs a test, which another one follows, and returns whether it passed."""
    finish: Callable[[], object] = lambda: None


class Ending(NamedTuple):
    """How a job ended, and the test that ran last."""

    result: Literal["passed", "failed", "hung"]
    test: str


def run_test(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run one test with its fixtures; return whether it passed."""
    failed: list[str] = []

    class Watch:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    watch = Watch()
    item.config.pluginmanager.register(watch)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    finally:
        item.config.pluginmanager.unregister(watch)
    return not failed


def run_jobs(jobs: Iterable[Job], workers: int, temporary: Path) -> Iterator[tuple[Job, Ending]]:
    """Run jobs, `workers` at once, and yield each with its ending.

    `temporary` gets a folder for each job, which goes when the job has ended.  Raises `RuntimeError` when a job could not
    be prepared or finished.
    """
    waiting = iter(jobs)
    running: dict[int, _Fork] = {}
    selector = selectors.DefaultSelector()
    number = 0
    try:
        while True:
            while len(running) < workers and (job := next(waiting, None)) is not None:
                number += 1
                fork = _Fork(job, temporary / str(number))
                running[fork.fd] = fork
                selector.register(fork.fd, selectors.EVENT_READ)
            if not running:
                return
            soonest = min(fork.deadline for fork in running.values())
            ready = {key.fd for key, _ in selector.select(max(0.0, soonest - monotonic()))}
            for fd, fork in list(running.items()):
                over = fd in ready and fork.read()
                if over or monotonic() > fork.deadline:
                    selector.unregister(fd)
                    del running[fd]
                    yield fork.job, fork.end(hung=not over)
    finally:
        for fork in running.values():
            fork.end(hung=True)
        selector.close()


class _Fork:
    """A forked process.  It reports through a pipe the number of each test before it runs, and the last result."""

    def __init__(self, job: Job, temporary: Path) -> None:
        self.job = job
        self.temporary = temporary
        self.at = -1
        self.result = ""
        self.deadline = monotonic() + _PREPARING
        self.fd, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.fd)
            _work(job, writing, temporary)
        os.close(writing)

    def read(self) -> bool:
        """Read from the pipe; return whether the process has closed it."""
        data = os.read(self.fd, 65536)
        for word in data.decode().split():
            if word.isdigit():
                self.at = int(word)
                self.deadline = monotonic() + self.job.limits[self.at]
            else:
                self.result = word
        return not data

    def end(self, *, hung: bool) -> Ending:
        """End the process, and the processes that its tests have left."""
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
                break
            except ProcessLookupError:
                # It has not made its process group yet.
                pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        shutil.rmtree(self.temporary, ignore_errors=True)
        test = self.job.tests[self.at].nodeid if self.at >= 0 else ""
        if hung:
            return Ending("hung", test)
        if self.result == "broken":
            raise RuntimeError("a job could not be prepared or finished; see above")
        # A process that ends without a result was ended by a test: `os._exit`, or a signal.
        return Ending("passed" if self.result == "passed" else "failed", test)


def _work(job: Job, writing: int, temporary: Path) -> NoReturn:
    """Do a job in the forked process, and end the process."""
    result = "broken"
    try:
        os.setsid()
        job.prepare()
        null = os.open(os.devnull, os.O_RDWR)
        errors = os.dup(2)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        if job.tests:
            temporary.mkdir()
            # The factory has no public way to get another folder.
            job.tests[0].config._tmp_path_factory._basetemp = temporary  # type: ignore[attr-defined]
        passed = _run_tests(job, writing)
        os.dup2(errors, 2)
        job.finish()
        result = "passed" if passed else "failed"
    except BaseException:
        # A mistake of this tool, or of the tests' fixtures; the process above raises for it.
        traceback.print_exc()
    finally:
        os.write(writing, f"{result}\n".encode())
        os._exit(0)


def _run_tests(job: Job, writing: int) -> bool:
    for number, item in enumerate(job.tests):
        os.write(writing, f"{number}\n".encode())
        following = job.tests[number + 1] if number + 1 < len(job.tests) else None
        if not job.passes(item, following):
            return False
    return True
