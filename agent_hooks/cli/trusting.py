"""Ask the person whether a project's set counts; where they cannot be asked, name the sets that wait, and the remedy.

`settle` is the one function that commands call.  A person can be asked where stdin and stderr are a terminal and no
agent started this process: an agent could answer its own question.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from agent_hooks.cli.proving import prove_loosening, prove_user
from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.trust_question import Look, is_large, set_text
from agent_hooks.cli.streams import can_show_question, complain, echo_raw, is_quiet
from agent_hooks.errors import AgentHooksError, count
from agent_hooks.settings import agent_home
from agent_hooks.trust.ancestors import agent_ancestor, refuse_below_an_agent
from agent_hooks.trust.facts import set_facts
from agent_hooks.trust.manifest import ProjectSet, TrustError
from agent_hooks.trust.open_sessions import open_session
from agent_hooks.trust.own import Own, own_files
from agent_hooks.trust.policy import REMEDY, ProjectTrust, Trust, TrustedSources, loosenings
from agent_hooks.trust.store import Approval, TrustStore

CHECK = "agent-hooks check"
"""The command that tells the problems of the hooks here."""
_REVERSE = "agent-hooks enable, agent-hooks unlock --end, agent-hooks trust"
_WIDEST = 200


def settle(trust: Trust, cwd: str, *more: str) -> TrustedSources:
    """Return the sources that count for a directory, after asking about each set that waits for a decision.

    Where no person can be asked, and for each set that still waits afterwards, stderr gets one message.  Raises
    `SettingsError`.
    """
    sources = asked(trust, cwd, *more)
    for message in sources.messages:
        complain(one_line(message))
    return sources


def asked(trust: Trust, cwd: str, *more: str) -> TrustedSources:
    """Return the sources that count for a directory, after asking; the caller shows the messages of the rest.

    Call it before an event loop runs, so that Ctrl-C at the question ends the command.  Raises `SettingsError`.
    """
    return ask_about(trust.sources(cwd, *more), trust, cwd, *more)


def ask_about(sources: TrustedSources, trust: Trust, cwd: str, *more: str) -> TrustedSources:
    """Ask about each set that waits, the outermost first, and return the sources that count after the answers.

    A set to which the person has said no is not asked about until it changes; a large set has to be approved by name.
    """
    if sources.problem is not None or not (waiting := [each for each in sources.projects if each.waits]):
        return sources
    if not can_ask():
        return sources
    store = trust.store()
    asked = False
    for project in waiting:
        entry = store.entries.get(project.key)
        said_no = entry is not None and entry.refused == project.found.digest
        if project.found.problem is None and not said_no and not is_large(project.found):
            asked = True
            ask(project, store)
    # The files may have changed meanwhile, so they are read again; the approved bytes are those that were shown.
    return trust.sources(cwd, *more) if asked else sources


def ask_again(trust: Trust, cwd: str) -> None:
    """Ask about each set that waits, also one to which the person has said no.

    Raises `AgentHooksError` where no person can be asked, and `TrustError`.
    """
    demand_person("trust")
    told = confirm_loosened(trust.store())
    if (own := own_waiting()) is not None:
        take_up(own)
    waiting = [each for each in trust.sources(cwd).projects if each.waits]
    if not waiting and own is None and not told:
        say("no hooks and settings wait for approval here")
    for project in waiting:
        if project.found.problem is not None:
            say(one_line(project.found.problem))
        elif is_large(project.found):
            say(f"{one_line(project.directory)} has too much to be shown here; to approve it: {REMEDY}")
        else:
            ask(project, trust.store())


def confirm_loosened(store: TrustStore) -> bool:
    """Ask about the commands that no user may have run, and return whether there are some.  Raises `TrustError`."""
    if not (told := loosenings(store)):
        return False
    say_lines([*map(one_line, told), ""])
    if confirm("Did you run these commands?"):
        store.confirm(prove_user("trust"))
        say_done("confirmed")
    else:
        say(f"each session tells you of them until you confirm them; to reverse them: {_REVERSE}")
    return True


def own_waiting() -> Own | None:
    """Return the user's own files if they have a change to take up while a session is open or recent."""
    own = own_files(agent_home())
    waits = own.problem is not None or (own.taken is not None and own.changed and open_session() is not None)
    return own if waits else None


def take_up(own: Own, *, yes: bool = False) -> bool:
    """Show the changes of the user's own files, ask about them, and return the answer.  Raises `TrustError`.

    The shown bytes are taken up.
    """
    say(one_line(own.problem or f"your own hooks or settings changed, and the former ones judge too: {own.home}"))
    say_lines([*set_text(own.found, own.taken, look()), ""])
    if own.found.problem is not None:
        raise TrustError(own.found.problem)
    if not yes and not confirm(f"{one_line(own.home)}\nTake these changes up?"):
        return False
    prove_loosening("trust", *["--yes"] * yes)
    own.take_up()
    say_done("taken up")
    return True


def can_ask() -> bool:
    """Tell whether a person is at the terminal to read a question and to answer it."""
    return can_show_question() and agent_ancestor() is None


def demand_person(command: str) -> None:
    """Raise `AgentHooksError` unless a person at a terminal runs the command; `command`: `unlock` for example."""
    refuse_below_an_agent(command)
    if not can_show_question():
        raise AgentHooksError(f"agent-hooks {command} is for a person at a terminal; stdin or stderr is no terminal")


def ask(
    project: ProjectTrust, store: TrustStore, *, by: str = "question", named: Collection[str] | None = None
) -> bool:
    """Show a set and ask whether it counts; keep the answer, and return it.

    The set that is approved is the one in memory, which was shown, even if its files have changed since.  `named`: the
    files to show in full.  Raises `TrustError`.
    """
    show(project, store, named=named)
    answer = confirm(f"{one_line(project.directory)}\nDo these hooks and settings count from now on?")
    if answer:
        origin = prove_user("trust")
        store.approve(project.key, project.found, by=by, origin=origin)
        tell_approved(project)
    elif answer is not None:
        store.refuse(project.key, project.found)
        say(f"not approved, and not asked again until it changes; to approve it later: {REMEDY}")
    return bool(answer)


def tell_approved(project: ProjectTrust) -> None:
    """Say that a set was approved, and which of its hooks cannot be loaded: it blocks all calls of a new session."""
    say_done(f"approved: {_summary(project)}")
    facts = set_facts(project.found)
    if broken := [one_line(each.name) for each in facts if each.role == "hook" and each.of("refused")]:
        names = ", ".join(broken)
        say(
            f"{names}: cannot be loaded, so each new session blocks every tool call until it is mended, and a running "
            f"one keeps its former version: {CHECK}"
        )


def _summary(project: ProjectTrust) -> str:
    files = count(len(project.found.files), "file")
    return f"{one_line(project.project)}: {files}, digest {project.found.digest}"


def show(project: ProjectTrust, store: TrustStore, *, named: Collection[str] | None = None) -> None:
    """Print a set on stderr: its state, its facts, and its code or its changes."""
    # Nobody has seen the set of an approval that was given without a terminal.
    approved = None if project.doubt is not None else approved_bytes(project, store)
    head = [
        f"agent-hooks: {one_line(project.directory)} {_state(project, approved)}",
        f"  {count(len(project.found.files), 'file')}, digest {project.found.digest}",
        *(f"  same content as approved in {one_line(root)}" for root in same_content(store, project)),
        "",
    ]
    at = look()
    lines = [piece for line in head for piece in at.fitted(line)]
    say_lines([*lines, *set_text(project.found, approved, at, named=named), ""])


def _state(project: ProjectTrust, approved: Mapping[str, bytes] | None) -> str:
    if project.doubt is not None:
        return f"was {project.doubt.removeprefix(f'{project.directory}: ').rpartition('; ')[0]}; this is all of it:"
    if project.note is not None:
        since = "" if approved is None else "; these are the changes since that one"
        return f"has an older set than the last approved one{since}:"
    if project.state in ("approved", "always", "empty"):
        return f"is {project.state}"
    if approved is not None:
        return "was changed since you approved it; these are the changes:"
    if project.state == "lost":
        return "was changed since you approved it, and the approved files are gone; this is all of it:"
    return "was never approved; until then nothing of it is run or obeyed:"


def approved_bytes(project: ProjectTrust, store: TrustStore) -> dict[str, bytes] | None:
    """Return the files of the last approved set by name, `None` when there is none or its bytes are gone."""
    entry = store.entries.get(project.key)
    return None if entry is None or not entry.approved else kept_bytes(store, project.project, entry.approved[-1])


def kept_bytes(store: TrustStore, project: str, approval: Approval) -> dict[str, bytes] | None:
    """Return the kept files of an approval by name, `None` when they are gone."""
    kept = store.kept_files(project, approval)
    if kept is None:
        return None
    return {name: kept[os.path.join(project, name)].data for name in approval.files}


def day(at: float) -> str:
    """Return the minute of an approval, which is in seconds since 1970."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def bytes_of(found: ProjectSet) -> dict[str, bytes]:
    """Return the files of a set by name."""
    return {file.name: file.data for file in found.files}


def same_content(store: TrustStore, project: ProjectTrust) -> list[str]:
    """Return the other projects in which the person has approved the very same set."""
    digest = project.found.digest
    return [
        entry.root
        for key, entry in store.entries.items()
        if key != project.key and entry.approval(digest) is not None and project.found.files
    ]


# ---- the terminal ----------------------------------------------------------------------------------------------------


def look() -> Look:
    """Return the way in which stderr shows a text: its columns, and colours unless they are not wanted."""
    columns = 100
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal:
        with suppress(OSError):
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Look(min(columns, _WIDEST), colour=terminal and not plain, words=terminal)


def say_lines(lines: Iterable[str]) -> None:
    """Print lines on stderr whose texts have been made harmless; characters that it cannot encode become escapes."""
    echo_raw("".join(f"{line}\n" for line in lines))


def say(text: str) -> None:
    """Print one message on stderr."""
    complain(text)


def say_done(text: str) -> None:
    """Print one line on stderr about what was done, unless `-q` was given."""
    if not is_quiet():
        say(text)


def confirm(question: str) -> bool | None:
    """Ask yes or no at the terminal; Enter is no, and the end of the input is no answer."""
    import termios

    # Keys that were pressed before the question was shown do not answer it.
    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    echo_raw(f"{question} [y/N] ")
    line = _line()
    if line is None:
        say_lines([""])
        return None
    return line.strip().lower() in ("y", "yes")


def _line() -> str | None:
    """Read one line from the terminal and nothing behind it; `None` at the end of the input."""
    data = b""
    while not data.endswith(b"\n"):
        try:
            chunk = os.read(sys.stdin.fileno(), 1024)
        # The terminal is gone, or this process is in its background.
        except OSError:
            chunk = b""
        if not chunk:
            break
        data += chunk
    return data.decode("utf-8", "replace") if data else None
