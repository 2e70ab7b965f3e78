"""The completions of the prompt line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from time import monotonic

import anyio
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from agent_hooks.cli.interactive import candidates
from agent_hooks.cli.interactive.candidates import FileCandidates, models, sessions, thinking_levels
from agent_hooks.cli.screen.completion import MOST, Candidate, PromptCompleter, matching
from agent_hooks.host.session import Session
from agent_hooks.values.content import UserMessage

# As prompt_toolkit is.
pytestmark = pytest.mark.anyio


async def completed(completer: PromptCompleter, text: str) -> list[str]:
    """Return the lines that Tab offers for a line."""
    event = CompleteEvent(completion_requested=True)
    found = [each async for each in completer.get_completions_async(Document(text), event)]
    return [text[: len(text) + each.start_position] + each.text for each in found]


def completer(project: Path, tools: Iterable[str] = (), *, only_tools: bool = False) -> PromptCompleter:
    """Return the completer of a project."""
    arguments = {"/thinking": thinking_levels, "/model": models, "/resume": sessions(lambda: str(project))}
    commands = {"/thinking": "", "/model": "", "/resume": ""}
    files = FileCandidates(str(project))
    return PromptCompleter(lambda: commands, arguments, lambda: map(Candidate, tools), files, lambda: only_tools)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with a tracked, an untracked and an ignored file."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "src").mkdir()
    for name in ("src/main.py", "notes for you.md", "secret.log", "domain.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "src"], check=True)
    return tmp_path


async def test_commands_and_their_arguments_are_completed(repository: Path) -> None:
    """A space follows a command, for its argument; one without arguments of its own has none."""
    session = Session.create(str(repository))
    session.add_message(UserMessage(content="hello", timestamp=0))
    session.close()
    found = completer(repository)
    assert await completed(found, "/t") == ["/thinking "]
    assert await completed(found, "/thinking m") == ["/thinking medium"]
    assert await completed(found, "/model p") == ["/model puppet"]
    assert [Path(line.split()[1]).name for line in await completed(found, "/resume ")] == [Path(str(session.path)).name]
    assert await completed(found, "/nothing x") == []
    assert await completed(found, "plain text") == []


async def test_files_after_an_at_sign_are_those_that_git_does_not_ignore(repository: Path) -> None:
    """A name that begins so comes first, then a part of a path that does; a path with a space is quoted."""
    found = completer(repository)
    assert await completed(found, "look at @mai") == ["look at @src/main.py", "look at @domain.txt"]
    assert await completed(found, "@notes") == ['@"notes for you.md"']
    assert await completed(found, 'see @"notes f') == ['see @"notes for you.md"']
    assert await completed(found, "@secret") == []
    assert await completed(found, "@srmpy") == ["@src/main.py"]
    assert await completed(found, "@pymr") == []
    assert await completed(found, "me@main") == []


async def test_a_line_of_the_puppet_names_a_tool(repository: Path) -> None:
    """At the beginning of a line; elsewhere in it, a file.  With another model, a file may begin a line too."""
    assert await completed(completer(repository, ["domino"]), "@dom") == ["@domain.txt", "@domino"]
    found = completer(repository, ["bash", "read", "domino"], only_tools=True)
    assert await completed(found, "@r") == ["@read"]
    assert await completed(found, "@dom") == ["@domino"]
    assert await completed(found, "first\n@b") == ["first\n@bash"]
    assert await completed(found, "@read @dom") == ["@read @domain.txt"]


async def test_no_name_of_a_file_is_offered_where_a_shell_would_run_it(repository: Path) -> None:
    """A stranger may have named it: `$(…)` in a name would run at Enter."""
    (repository / "dom$(touch x)").write_text("")
    found = completer(repository, ["bash"], only_tools=True)
    for text in ("!cat @dom", " !cat @dom", "!cat a\ncat @dom", "@bash cat @dom", "look\n@bash cat @dom"):
        assert await completed(found, text) == []
    assert "wow! @domain.txt" in await completed(found, "wow! @dom")


async def test_a_project_that_is_too_large_to_list_offers_the_files_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is given up in time, and the event loop goes on meanwhile."""

    async def endless(directory: str) -> list[str]:
        await anyio.sleep_forever()
        return []

    monkeypatch.setattr(candidates, "list_files", endless)
    monkeypatch.setattr(candidates, "PATIENCE", 0.05)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file.txt").write_text("")
    assert await completed(completer(tmp_path), "@deep/f") == ["@deep/file.txt"]
    assert await completed(completer(tmp_path), "@de") == ["@deep/"]
    assert await completed(completer(tmp_path), "@none/") == []


async def test_a_directory_of_100_000_files_offers_a_few(tmp_path: Path) -> None:
    """The names are looked at in a thread, and no more than the list shows are offered."""
    names = [f"part{number:06}.txt" for number in range(100_000)]
    began = monotonic()
    assert matching("part00001", names) == names[10:20]
    assert len(matching("part", names)) == MOST
    assert monotonic() - began < 5
