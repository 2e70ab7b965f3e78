"""The texts that are slash commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_hooks.cli.interactive.vocabulary import LONGEST, PromptFiles
from agent_hooks.storage.files import StorageError
from running import Command


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory with a home, an agent home in it, and a project."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for each in ("home/.agent/commands", "home/.claude/commands", "project/.agent/commands", "project/part"):
        (tmp_path / each).mkdir(parents=True)
    return tmp_path


def files_of(place: Path) -> PromptFiles:
    """Return the files of a session in a part of the project."""
    top = place / "project"
    hide = lambda text: text.replace("s3cret", "[hidden]")  # noqa: E731
    return PromptFiles(str(place / "home/.agent"), str(top), str(top / "part"), hide)


def test_those_of_the_person_come_before_those_of_the_project(place: Path) -> None:
    """A file that is no command by its name is left out."""
    for path in (
        "home/.agent/commands/a.md",
        "home/.claude/commands/b.md",
        "project/.agent/commands/a.md",
        "project/.agent/commands/b.md",
        "project/.agent/commands/c-2.md",
        "project/.agent/commands/No.md",
        "project/.agent/commands/no.txt",
        "project/.agent/commands/..md",
    ):
        (place / path).write_text(path)
    (place / "project/.agent/commands/d.md").mkdir()
    found = {name: os.path.relpath(path, place) for name, path in files_of(place).found().items()}
    assert found == {
        "/a": "home/.agent/commands/a.md",
        "/b": "home/.claude/commands/b.md",
        "/c-2": "project/.agent/commands/c-2.md",
    }


@pytest.mark.parametrize(
    ("text", "argument", "sent"),
    [
        ("Review.", "", "Review."),
        ("Review.", "src 'a b'", "Review.\n\nsrc 'a b'"),
        ("Review $ARGUMENTS now", "src 'a b'", "Review src 'a b' now"),
        ("$2 then $1, $3; $@", "one 'two 2'", "two 2 then one, ; one 'two 2'"),
        ("$1", "it's", "it's"),
        ("costs $10", "x", "costs x0"),
        ("---\ndescription: 'Look'\nmodel: x\n---\n\nReview.\r\n", "", "Review."),
        ("---\nno end", "", "---\nno end"),
        ("!`rm -rf x` s3cret $ARGUMENTS", "$(y) \\1", "!`rm -rf x` [hidden] $(y) \\1"),
    ],
)
def test_the_words_come_into_their_places(place: Path, text: str, argument: str, sent: str) -> None:
    """Nothing in a text or in the words is run."""
    path = place / "project/.agent/commands/review.md"
    path.write_bytes(text.encode())
    assert files_of(place).message(str(path), argument) == sent


def test_the_menu_shows_the_description_or_the_first_words(place: Path) -> None:
    """A file that cannot be read shows its path."""
    path = place / "project/.agent/commands/review.md"
    path.write_text("---\ndescription: 'Look'\n---\nReview.")
    assert files_of(place).about(str(path)) == "Look"
    path.write_text("Review.\nAll.")
    assert files_of(place).about(str(path)) == "Review."
    path.unlink()
    assert files_of(place).about(str(path)) == str(path)


def test_a_link_out_of_the_project_and_a_long_file_are_not_sent(place: Path) -> None:
    """A project from elsewhere must not send a file of the person; the person's own links lead anywhere."""
    (place / "key").write_text("private")
    for path in ("project/.agent/commands/a.md", "home/.agent/commands/b.md"):
        (place / path).symlink_to(place / "key")
    (place / "project/.agent/commands/c.md").write_text("x" * (LONGEST + 1))
    files = files_of(place)
    found = files.found()
    with pytest.raises(StorageError, match="is a link out of"):
        files.message(found["/a"], "")
    assert files.message(found["/b"], "") == "private"
    with pytest.raises(StorageError, match="more than 100,000 bytes"):
        files.message(found["/c"], "")


def test_an_agent_does_not_write_those_of_the_person(command: Command, home: Path) -> None:
    """They would reach later sessions; those of the project are files like others."""
    own = home / ".agent" / "commands"
    own.mkdir(parents=True)
    done = command(
        "run",
        "--no-session",
        f"@bash echo x > {own}/a.md\n@bash mkdir -p .agent/commands; echo x > .agent/commands/b.md",
    )
    assert not (own / "a.md").exists()
    assert "write-guard-settings" in done.stdout + done.stderr
    assert (command.project / ".agent/commands/b.md").exists()
