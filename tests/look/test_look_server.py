"""The server of the page gives its data to one browser of one person, and to no other program, user or page."""

from __future__ import annotations

import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from agent_hooks.look.app import Access
from look.made_up import MadeUpView
from look.serving import Served, served

DATA = (
    "/api/summary",
    "/api/columns",
    "/api/commands?rows=1",
    "/api/search?q=x",
    "/api/card/1",
    "/api/hooks",
    "/api/live",
)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(MadeUpView(400), tmp_path_factory.mktemp("look")) as running:
        running.start()
        yield running


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_start_token_is_for_one_use_and_its_file_for_one_person(tmp_path: Path, backend: str) -> None:
    """The redirect file has 0600; the token in it counts once, and then the file is gone."""
    with served(MadeUpView(10), tmp_path / "look", backend) as running:
        assert stat.S_IMODE(running.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(running.path.parent.stat().st_mode) == 0o700
        token = running.start_token
        assert running.request("/start", "POST", "x" * 43).status == 403
        running.start()
        assert running.request("/api/summary").json["calls"] == 10
        assert not running.path.exists()
        second = running.request("/start", "POST", token)
        assert second.status == 403
        assert b"run agent-hooks look again" in second.body


def test_the_start_token_is_valid_for_a_minute() -> None:
    """One second before its end it counts, at the end it does not."""
    now = 100.0
    access = Access("127.0.0.1:1", lambda: now)
    now += 60
    assert access.exchange(access.start_token) is None
    now -= 1
    assert access.exchange(access.start_token) is not None


@pytest.mark.parametrize("path", DATA)
def test_there_is_no_data_without_the_token(server: Served, path: str) -> None:
    """Neither without one, nor with another one, nor with one in the address or in a cookie."""
    assert server.request(path, authorization="").status == 401
    assert server.request(path, authorization="Bearer x").status == 401
    assert server.request(path, authorization=f"Bearer {server.bearer}é".encode().decode("latin-1")).status == 401
    joined = f"{path}{'&' if '?' in path else '?'}token={server.bearer}"
    assert server.request(joined, authorization="", cookie=f"token={server.bearer}").status == 401


@pytest.mark.parametrize("host", ["localhost:{port}", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_foreign_host_gets_nothing(server: Served, host: str) -> None:
    """A name that leads to 127.0.0.1 by DNS rebinding gets neither data nor page, also with the token."""
    for path in ("/", "/page/main.js", "/api/summary"):
        reply = server.request(path, host=host.format(port=server.port))
        assert reply.status in (400, 421)
        assert b"sessions" not in reply.body


def test_a_page_of_another_port_gets_nothing(server: Served) -> None:
    """It is another origin: neither its fetch nor its form counts, and no header invites it."""
    other = f"http://127.0.0.1:{server.port + 1}"
    for headers in (
        {"origin": other, "sec_fetch_site": "same-site"},
        {"origin": other},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
    ):
        for path in ("/api/summary", "/page/main.js"):
            reply = server.request(path, **headers)
            assert (reply.status, "access-control-allow-origin" in reply.headers) == (403, False)
        assert server.request("/start", "POST", "x", **headers).status == 403
    assert server.request("/api/summary", sec_fetch_site="").status == 403
    assert server.request("/api/summary", "OPTIONS", origin=other, access_control_request_method="GET").status == 405


def test_the_page_itself_opens_from_anywhere_and_holds_no_data(server: Served) -> None:
    """The redirect file is of another origin; a person who follows it gets the page, and a frame does not."""
    reply = server.request("/", authorization="", sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    assert reply.status == 200
    assert b"session-" not in reply.body
    assert server.request("/", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status == 403


def test_every_response_has_the_policy_and_is_not_kept(server: Served) -> None:
    """Also a refusal and a missing path have the headers."""
    for reply in (
        server.request("/"),
        server.request("/page/main.js"),
        server.request("/api/summary"),
        server.request("/api/summary", authorization=""),
        server.request("/", host="x"),
        server.request("/nowhere"),
    ):
        assert reply.headers["content-security-policy"] == POLICY
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == "no-store"
        assert "set-cookie" not in reply.headers


def test_nothing_but_the_start_is_posted(server: Served) -> None:
    """A request with another method is refused, and so is a start by GET."""
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert server.request("/api/summary", method).status == 405
    assert server.request("/start").status == 405


def test_only_files_of_the_page_are_served(server: Served) -> None:
    """No name leads out of the folder, and the types of the checker are no part of the page."""
    assert server.request("/page/main.js").headers["content-type"].startswith("text/javascript")
    for name in ("../app.py", "%2e%2e%2fapp.py", "..%2f..%2f__init__.py", "shapes.d.ts", "x.js"):
        assert server.request(f"/page/{name}").status == 404


def test_it_listens_on_the_loopback_alone(server: Served) -> None:
    """No address of another interface leads to the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no other interface")
        address = probe.getsockname()[0]
    with socket.socket() as client:
        assert address != "127.0.0.1"
        assert client.connect_ex((address, server.port)) != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_gets_no_data(tmp_path: Path) -> None:
    """A process of another user cannot read the redirect file, and without a token the server gives it nothing."""
    program = dedent("""
        import os, socket, sys
        client = socket.socket()
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        try:
            open(sys.argv[1])
        except PermissionError:
            print("no file")
        client.connect(("127.0.0.1", int(sys.argv[2])))
        lines = ("GET /api/summary HTTP/1.1", f"Host: 127.0.0.1:{sys.argv[2]}", "Sec-Fetch-Site: same-origin", "", "")
        client.sendall("\\r\\n".join(lines).encode())
        print(client.recv(1000).split()[1].decode())
    """)
    with served(MadeUpView(10), tmp_path / "look") as running:
        line = [sys.executable, "-S", "-c", program, str(running.path), str(running.port)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:2] == ["no file", "401"]


def test_the_data_arrives_as_the_page_reads_it(server: Served) -> None:
    """Columns have a header in front and begin at a multiple of eight bytes; rows are numbers and ranges."""
    body = server.request("/api/columns").body
    (length,) = struct.unpack("<I", body[:4])
    assert (4 + length) % 8 == 0
    assert server.request("/api/commands?rows=1,3-5").json == MadeUpView(10).command([1, 3, 4, 5])
    for wrong in ("", "x", "1-", "5-99999", "-1", "1,,2", "²"):
        assert server.request(f"/api/commands?rows={wrong.encode().hex('%') if wrong == '²' else wrong}").status == 400
    assert server.request("/api/columns?after=x").status == 400
    assert server.request("/api/card/399").json["id"] == "call-399"
    assert server.request("/api/card/400").status == 404
    assert server.request("/api/row/call-7").json == 7
    assert server.request("/api/row/..%2Fx").json is None
