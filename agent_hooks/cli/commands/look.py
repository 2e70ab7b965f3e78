"""`agent-hooks look`: the page that shows the work of the hooks, in the browser or as one file."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from agent_hooks.cli.streams import echo
from agent_hooks.errors import AgentHooksError
from agent_hooks.settings import agent_home
from agent_hooks.trust.ancestors import refuse_below_an_agent

if TYPE_CHECKING:
    import anyio
    import anyio.abc

    from agent_hooks.look.view import View

_INSTALL = "the page needs the extra `http`: pip install 'agent-hooks-runtime[http]'"


@click.command("look")
@click.option("--save", "path", type=click.Path(dir_okay=False), help="Write the page as one file, and serve nothing.")
@click.option("--no-browser", is_flag=True, help="Print the path of the file to open, and open no browser.")
def command(path: str | None, no_browser: bool) -> None:
    """Show the work of your hooks as a page: every recorded call, why it ran or not, and how to take it back.

    A small server on this machine serves it until Ctrl-C. The page changes nothing; its commands are for copying.
    """
    refuse_below_an_agent("look")
    if path is not None:
        _save(path)
    else:
        _serve(no_browser)


def _view() -> View:
    # Imported here, because the server's libraries may be missing, which is told first.
    from agent_hooks.look.view import View

    view = View(agent_home(), cwd=".")
    view.refresh()
    return view


def _save(path: str) -> None:
    # Imported here, because serving does not need it.
    from agent_hooks.look.saved import compose
    from agent_hooks.storage.files import write_atomically
    from agent_hooks.storage.links import inside_tree

    target = inside_tree(path, os.getcwd())
    if os.path.islink(target):
        raise AgentHooksError(f"--save {path}: is a link to {os.readlink(target)}; remove it, or name another file")
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        # A path with a typo would make directories.
        raise AgentHooksError(f"--save {path}: there is no directory {directory}; make it first")
    saved = compose(_view())
    write_atomically(target, saved.content, path, secret=True)
    echo(f"{path}: {len(saved.content):,} bytes, readable by you only")
    echo(saved.note)
    echo("Read it before you send it: commands, paths, reasons and results of your sessions are in it.")


def _serve(no_browser: bool) -> None:
    try:
        # Imported here, because these libraries are an extra.
        from agent_hooks.look.serving import look
    except ImportError as exc:
        raise AgentHooksError(f"{_INSTALL} ({exc})") from None
    # Imported here, because other commands do not need them.
    import anyio

    from agent_hooks.look.index.index import DIRECTORY

    view = _view()

    def ready(address: str, file: str) -> None:
        if no_browser:
            echo(f"open this file in a browser within a minute: {file}")
        else:
            _open(file)
        echo(f"the page is at {address}; Ctrl-C ends it", err=True)

    async def main() -> None:
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            await tasks.start(_stop_at_signals, stop)
            await look(view, os.path.join(agent_home(), DIRECTORY), ready, stop)
            tasks.cancel_scope.cancel()

    anyio.run(main)


async def _stop_at_signals(stop: anyio.Event, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    # Imported here, because other commands do not need it.
    from anyio import open_signal_receiver

    with open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            stop.set()


def _open(file: str) -> None:
    """Open the redirect file in the person's browser; its path is the only argument, and holds no token."""
    # Imported here, because only this needs it.
    import webbrowser

    with _quiet():
        is_open = webbrowser.open(f"file://{file}")
    if not is_open:
        echo(f"no browser could be started; open this file in one within a minute: {file}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the words of a browser that starts out of the terminal."""
    kept = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        for number, old in enumerate(kept, 1):
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)
