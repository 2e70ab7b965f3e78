"""The six recipes for interceptors, as files to try."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from agent_hooks import ToolOutput
from agent_hooks.testing import MakeRunner, call_tool
from running import Command
from support import ROOT, EchoTool

HOOKS = ROOT / "examples" / "hooks"


def example(name: str) -> str:
    """Return the path of an example hook."""
    return str(HOOKS / name)


def test_a_command_is_blocked_by_its_text(command: Command) -> None:
    """Other commands run."""
    done = command("run", "--hook", example("intercept_block.py"), "@bash npm publish\n@bash echo fine")
    assert '"status": "blocked", "tool": "bash", "reason": "publishing is done by CI' in done.stdout
    assert "   fine" in done.stdout


def test_an_argument_is_added_where_it_is_missing(command: Command) -> None:
    """The tool gets the changed input."""
    (command.project / "here.txt").write_text("x")
    hooks = ("--hook", example("intercept_defaults.py"), "--hook", example("intercept_log.py"))
    done = command("run", *hooks, "@bash ls\n@bash ls --color=always\n@bash echo ls")
    assert 'calling bash {"command": "ls --color=never"}' in done.stderr
    assert 'calling bash {"command": "ls --color=always"}' in done.stderr
    assert 'calling bash {"command": "echo ls"}' in done.stderr
    assert "   here.txt" in done.stdout


def test_colours_are_taken_out_of_results(command: Command) -> None:
    """They are missing in the session and on the screen."""
    done = command(
        "run", "--hook", example("intercept_strip_ansi.py"), r"@bash printf '\033[31mred\033[0m; \033]0;t\a!'"
    )
    assert "   red; !" in done.stdout


def test_the_redact_example_hides_keys_and_keeps_short_words(command: Command) -> None:
    """A short word like a key is not hidden."""
    text = "sk-abcdefghijklmnopqrstuvwxyz sk-short"
    done = command("run", "--hook", example("intercept_redact.py"), f"@bash echo {text}")
    assert "   sk-*** sk-short" in done.stdout


class Teapot(BaseHTTPRequestHandler):
    """A server that answers with an unusual status."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/fine" else 418)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Give the address of that server."""
    with HTTPServer(("127.0.0.1", 0), Teapot) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.anyio
async def test_details_are_enriched_by_what_a_server_says(hook_runner: MakeRunner, url: str) -> None:
    """The status comes over real HTTP, for each result that has a url."""
    runner = await hook_runner(example("intercept_enrich.py"))
    found: list[Any] = []
    for details in ({"url": f"{url}/fine"}, {"url": f"{url}/tea"}, {"url": "file:///etc/passwd"}, None):

        async def body(given: dict[str, Any], details: Any = details) -> ToolOutput:
            return ToolOutput("x", details)

        output = await call_tool(runner, "bash", {"command": "ls"}, EchoTool(body=body))
        found.append(output.details and output.details.get("status"))
    assert found == [200, 418, None, None]
