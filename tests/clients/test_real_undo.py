"""Undo of the work of a real client: pi, with our hooks installed and no hook file at all."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clients.drivers import Pi
from clients.seat import Seat

pytestmark = pytest.mark.client


@pytest.fixture
def seat(project: Path, home: Path) -> Iterator[Seat]:
    """Give pi in a repository with a committed file and files that git does not know."""
    with closing(Pi(project, home)) as pi:
        seat = Seat(pi)
        (project / "code.py").write_text("a = 1\n")
        words = ("-c", "user.name=p", "-c", "user.email=p@example.com")
        subprocess.run(["git", "add", "code.py"], cwd=project, check=True)
        subprocess.run(["git", *words, "commit", "-qm", "one"], cwd=project, check=True)
        (project / "notes").write_text("by hand\n")
        (project / "draft").write_text("by hand too\n")
        (project / "key").write_text("secret\n")
        (project / "key").chmod(0o600)
        seat.trust()
        pi.install()
        yield seat


def test_what_a_client_broke_three_turns_ago_comes_back_with_one_command(seat: Seat) -> None:
    """It used `sed`, `rm` and `mv`, each in a run of its own; an edit made since stays."""
    for command in ("sed -i s/1/2/ code.py", "rm notes key", "mv draft elsewhere"):
        run = seat.shell(command)
        assert len(run.results) == 1, run.output
    assert not seat.has("notes")
    (seat.project / "mine").write_text("since\n")
    (seat.project / "code.py").write_text("a = 3\n")
    done = seat.client.hooks("undo", "3", "--yes")
    texts = {name: (seat.project / name).read_text() for name in ("code.py", "notes", "draft", "key", "mine")}
    assert texts == {
        "code.py": "a = 1\n",
        "notes": "by hand\n",
        "draft": "by hand too\n",
        "key": "secret\n",
        "mine": "since\n",
    }
    assert not seat.has("elsewhere")
    [kept] = seat.project.glob("code.py.edited-before-undo-*")
    assert kept.read_text() == "a = 3\n"
    assert kept.name in done.stderr
    assert (seat.project / "key").stat().st_mode & 0o777 == 0o600
    assert done.stdout.count("  pi  go") == 3


def test_a_client_cannot_take_its_turns_back(seat: Seat) -> None:
    """The guard stops the call of the client; the files stay as the agent left them."""
    seat.shell("echo agent > notes")
    run = seat.shell("agent-hooks undo --yes")
    assert "only a person" in run.results[0]
    assert (seat.project / "notes").read_text() == "agent\n"
