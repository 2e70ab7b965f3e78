"""Wheels, a package index, and hooks with a header: no test here needs the network."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest

GATE = """
import os
import tinydep
from agent_hooks import Block

def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        return Block(f"{tinydep.WORD} in {os.getpid()}")
"""


def write_wheel(
    directory: Path, name: str = "tinydep", body: str | None = "WORD = 'blocked'\n", version: str = "1.0"
) -> Path:
    """Write a wheel with one module; with none when `body` is `None`."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        if body is not None:
            file.writestr(f"{name}.py", body)
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")
    return path


def use_installed(monkeypatch: pytest.MonkeyPatch, directory: Path, *names: str) -> None:
    """Let uv find only wheels without modules, so that a hook gets these packages from the environment of the tests."""
    for name in names:
        write_wheel(directory, name, None, metadata.version(name))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(directory))


def header(*dependencies: str, more: str = "", python: str = ">=3.11") -> str:
    """Return a header; `more`: further lines of it."""
    named = ", ".join(f'"{each}"' for each in dependencies)
    lines = [f'requires-python = "{python}"', f"dependencies = [{named}]", *more.splitlines()]
    return "\n".join(["# /// script", *(f"# {line}" for line in lines), "# ///", ""])


class Index:
    """A package index that serves the wheels of a directory, and keeps the paths that were asked for."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.url = f"http://127.0.0.1:{port}/simple"
        self.asked: list[str] = []

    def answer(self, path: str) -> bytes | None:
        """Return the page or the file at a path."""
        self.asked.append(path)
        kind, _, name = path.strip("/").partition("/")
        if kind == "files":
            return (self.directory / name).read_bytes()
        name = name.strip("/").replace("-", "_")
        wheels = sorted(each.name for each in self.directory.glob(f"{name}-*.whl"))
        return "".join(f'<a href="/files/{each}">{each}</a>' for each in wheels).encode() if wheels else None


@contextmanager
def serving(directory: Path) -> Iterator[Index]:
    """Serve an index while the block runs."""
    directory.mkdir(parents=True, exist_ok=True)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = index.answer(self.path)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/zip")
            # uv would keep a page for a while, also when a newer wheel is there.
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(found or b"")

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    index = Index(directory, server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
