"""Records become spans and logs of OpenTelemetry, from files and live, at a real endpoint on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks import (
    AgentStart,
    AssistantMessage,
    Block,
    HookAPI,
    HookError,
    HookRunner,
    SessionEvent,
    ToolCall,
    TurnStart,
)
from agent_hooks.records import Records, exporting, lines, live_export
from agent_hooks.records.otlp_values import ALSO, PUBLIC, agent_span_id, call_span_id, trace_id
from agent_hooks.records.reading import record_files
from agent_hooks.settings import OtlpSettings
from agent_hooks.storage.digests import line_hash, sha256
from agent_hooks.testing import StandInTool, call_tool
from other_agent import CALL, OtherAgent
from otlp_endpoint import Endpoint, body, otlp_endpoint, plain
from running import Command
from support import PATIENCE, hook_of

pytestmark = pytest.mark.anyio

SECRET_WORDS = "zebra-crossing"
MESSAGE = AssistantMessage(content="done", timestamp=0, provider="none", model="none")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Give an endpoint that takes everything."""
    with otlp_endpoint() as started:
        yield started


def gate(event: ToolCall, ctx: Any) -> Block | None:
    """Block one command."""
    if "stop" in event.input["command"]:
        return Block(f"not {event.input['command']}", rule="test.stop")
    return None


def bash_hook() -> Any:
    def register(api: HookAPI) -> None:
        api.on("tool_call", gate)
        api.on("tool_result", lambda event, ctx: None)

    return hook_of(register)


def runner_of(home: Path, otlp: OtlpSettings | None = None, *, session: str = "s1") -> HookRunner:
    return HookRunner([bash_hook()], cwd=str(home), session_id=session, records=Records(home=str(home), otlp=otlp))


async def session_of(runner: HookRunner) -> None:
    """Run two calls in a session: one passes, one is blocked."""
    tool = StandInTool("bash", f"out {SECRET_WORDS}")
    async with runner:
        await runner.emit(SessionEvent(reason="start"))
        await runner.emit(AgentStart())
        await runner.emit(TurnStart(turn_index=3, timestamp=0))
        await call_tool(runner, "bash", {"command": f"echo {SECRET_WORDS}"}, tool, tool_call_id="c1")
        await call_tool(runner, "bash", {"command": f"stop {SECRET_WORDS}"}, tool, tool_call_id="c2")
        await runner.emit(SessionEvent(reason="shutdown"))


def exported(endpoint: Endpoint, home: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `records export` on the records below a home."""
    program = [sys.executable, "-m", "agent_hooks", "records", "export", *args]
    environment = {**os.environ, "AGENT_HOME": str(home), **variables}
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def check_spans(endpoint: Endpoint) -> None:
    """Check the spans of `session_of` and their parentage."""
    agent = endpoint.span("invoke_agent embedded")
    passed, blocked = sorted(
        (span for span in endpoint.spans if span.name == "execute_tool bash"),
        key=lambda span: span.start_time_unix_nano,
    )
    assert {span.trace_id for span in endpoint.spans} == {trace_id("s1").to_bytes(16)}
    assert agent.parent_span_id == b""
    assert agent.span_id == agent_span_id("s1", "main").to_bytes(8)
    assert passed.parent_span_id == blocked.parent_span_id == agent.span_id
    for span in (passed, blocked):
        assert agent.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= agent.end_time_unix_nano
        assert next(plain(event.attributes)["agent_hooks.stage"] for event in span.events) == "tool_call"
        for event in span.events:
            assert event.name == "agent_hooks.step"
            assert span.start_time_unix_nano <= event.time_unix_nano <= span.end_time_unix_nano
    facts = plain(passed.attributes)
    assert facts["gen_ai.operation.name"] == "execute_tool"
    assert facts["gen_ai.tool.name"] == "bash"
    assert facts["gen_ai.tool.type"] == "function"
    assert facts["gen_ai.tool.call.id"] == "c1"
    assert facts["gen_ai.conversation.id"] == "s1"
    assert facts["gen_ai.agent.name"] == "embedded"
    assert facts["gen_ai.agent.id"] == "main"
    assert facts["agent_hooks.verdict"] == "pass"
    assert facts["agent_hooks.turn"] == 3
    assert "agent_hooks.incomplete" not in facts
    assert passed.status.code == 0
    facts = plain(blocked.attributes)
    assert facts["agent_hooks.verdict"] == "block"
    assert facts["agent_hooks.rule"] == "test.stop"
    assert facts["error.type"] == "blocked"
    assert blocked.status.code == 2
    assert plain(agent.attributes)["gen_ai.operation.name"] == "invoke_agent"
    names = [event.name for event in agent.events if event.name != "agent_hooks.step"]
    assert names == ["agent_hooks.session", "agent_hooks.run", "agent_hooks.turn", "agent_hooks.session"]


def check_logs(endpoint: Endpoint, home: Path) -> None:
    """Check that each line is one log, which bears the hash of the line, and that the head is there."""
    (path,) = record_files(str(home / "records"))
    written = Path(path).read_bytes().splitlines()
    logs = [log for log in endpoint.logs if log.event_name != "agent_hooks.head"]
    assert [body(log)["n"] for log in logs] == [*range(1, len(written) + 1)]
    assert [plain(log.attributes)["agent_hooks.record.hash"] for log in logs] == [line_hash(line) for line in written]
    head = plain(endpoint.named("agent_hooks.head")[-1].attributes)
    assert head["agent_hooks.record.file"] == os.path.basename(path)
    assert head["agent_hooks.record.lines"] == len(written)
    assert head["agent_hooks.record.head"] == line_hash(written[-1])
    of_call = {log.span_id for log in endpoint.named("agent_hooks.decision")}
    assert of_call == {span.span_id for span in endpoint.spans if span.name == "execute_tool bash"}


async def test_record_files_become_a_trace_and_logs_without_any_input(tmp_path: Path, endpoint: Endpoint) -> None:
    """Each call is a span below the agent's, each step an event, each line a log; no text of a model or hook leaves."""
    await session_of(runner_of(tmp_path))
    done = exported(endpoint, tmp_path, "--otlp", endpoint.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"of 1 file, 3 spans to {endpoint.url}\n")
    check_spans(endpoint)
    check_logs(endpoint, tmp_path)
    assert SECRET_WORDS.encode() not in b"".join(endpoint.bodies)


async def test_the_same_record_exported_twice_is_the_same_span(tmp_path: Path, endpoint: Endpoint) -> None:
    """The ids come from the records, so a store of traces can join the two."""
    await session_of(runner_of(tmp_path))
    for _ in range(2):
        assert exported(endpoint, tmp_path, "--otlp", endpoint.url).returncode == 0
    half = len(endpoint.spans) // 2
    assert endpoint.spans[:half] == endpoint.spans[half:]


async def test_inputs_are_exported_when_a_person_asks_for_them(tmp_path: Path, endpoint: Endpoint) -> None:
    """With --inputs, the span has the arguments and the reason."""
    await session_of(runner_of(tmp_path))
    assert exported(endpoint, tmp_path, "--otlp", endpoint.url, "--inputs").returncode == 0
    blocked = plain(next(span for span in endpoint.spans if span.status.code == 2).attributes)
    assert json.loads(blocked["gen_ai.tool.call.arguments"]) == {"command": f"stop {SECRET_WORDS}"}
    assert blocked["agent_hooks.reason"] == f"not stop {SECRET_WORDS}"


def test_each_field_of_a_line_is_public_or_known_to_hold_text() -> None:
    """A field that is added stays out of the export until it is named as public; these are the private ones."""
    kinds = [lines.Step, *lines.AnyLine.__args__]
    names = {field for kind in kinds for field in kind.__struct_encode_fields__} - PUBLIC
    texts = {"diff", "error", "files", "goOn", "input", "message", "programs", "reason", "remedy", "rewrite", "text"}
    assert names == texts | {"title", "program"}
    assert {"note": {"reason"}, "tombstone": {"files"}} == ALSO


async def test_records_are_exported_while_they_are_written(tmp_path: Path, endpoint: Endpoint) -> None:
    """The end of the runner waits for the last batch."""
    await session_of(runner_of(tmp_path, OtlpSettings(endpoint=endpoint.url + "/", headers={"x-team": "a"})))
    check_spans(endpoint)
    check_logs(endpoint, tmp_path)
    assert SECRET_WORDS.encode() not in b"".join(endpoint.bodies)
    assert {headers["x-team"] for headers in endpoint.headers} == {"a"}


async def test_the_halves_of_a_call_in_two_processes_are_one_span(tmp_path: Path, endpoint: Endpoint) -> None:
    """The span's id comes from the call, and the export from files joins the halves."""
    await session_of(runner_of(tmp_path))
    (path,) = record_files(str(tmp_path / "records"))
    written = Path(path).read_bytes().splitlines(keepends=True)
    parts = {"1.1000": [], "2.2000": []}  # type: dict[str, list[bytes]]
    for line in written:
        parts["2.2000" if b'"kind":"result"' in line else "1.1000"].append(line)
    os.unlink(path)
    for name, part in parts.items():
        Path(tmp_path, "records", f"s1.{name}.jsonl").write_bytes(b"".join(part))
    assert exported(endpoint, tmp_path, "--otlp", endpoint.url).returncode == 0
    check_spans(endpoint)


@contextmanager
def silent_endpoint() -> Iterator[str]:
    """Accept connections and never answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for each in kept:
        each.close()


@contextmanager
def refusing_endpoint() -> Iterator[str]:
    """Name a port that refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(("dead", "calls"), [(silent_endpoint, 1_200), (refusing_endpoint, 1_200)])
async def test_a_dead_endpoint_delays_no_call_and_is_reported_once(
    tmp_path: Path, dead: Any, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls fill the queue; none waits for the endpoint, and the end waits two seconds at most."""
    monkeypatch.setattr(live_export, "QUEUE_LINES", 500)
    errors: list[HookError] = []
    tool = StandInTool("bash", "out")
    with dead() as url:
        runner = runner_of(tmp_path, OtlpSettings(endpoint=url))
        runner.on_error(errors.append)
        slowest = 0.0
        async with runner:
            for _ in range(calls):
                began = time.perf_counter()
                await call_tool(runner, "bash", {"command": "echo"}, tool)
                slowest = max(slowest, time.perf_counter() - began)
            ended = time.perf_counter()
        ended = time.perf_counter() - ended
    # A wait for the endpoint would take seconds; a busy machine does not.
    assert slowest < 2
    assert ended < live_export.PATIENCE + 3
    texts = [str(error) for error in errors]
    assert len([text for text in texts if "records not exported to" in text]) == 1, texts
    assert len([text for text in texts if "records are not exported to" in text]) <= 1, texts
    # Both lines of each call are in the file.
    (path,) = record_files(str(tmp_path / "records"))
    assert Path(path).read_bytes().count(b"\n") == 2 * calls


def test_an_end_without_patience_leaves_the_last_batch_to_the_thread(tmp_path: Path) -> None:
    """A resident server goes on with its other sessions when one ends; its process waits at its own end."""
    with silent_endpoint() as url:
        export = live_export.LiveExport(OtlpSettings(endpoint=url), str(tmp_path), print)
        export.take("s.1.1.jsonl", b"{}\n")
        began = time.perf_counter()
        export.close(0)
        assert time.perf_counter() - began < 1
        began = time.perf_counter()
        live_export._flush()
        assert time.perf_counter() - began < live_export.PATIENCE + 3


async def test_an_endpoint_that_refuses_or_redirects_is_named_with_its_answer(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    """A redirect is not followed, because it would lead the records elsewhere."""
    await session_of(runner_of(tmp_path))
    with otlp_endpoint() as elsewhere:
        for status, headers in ((401, {}), (307, {"Location": elsewhere.url + "/v1/logs"})):
            endpoint.status, endpoint.answer_headers = status, headers
            done = exported(endpoint, tmp_path, "--otlp", endpoint.url)
            assert done.returncode == 1
            assert f"{endpoint.url}: it answered {status}" in done.stderr
            assert "nothing was sent" in done.stderr
        assert not elsewhere.bodies
    with refusing_endpoint() as url:
        done = exported(endpoint, tmp_path, "--otlp", url)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert f"{url}: Connection refused; nothing was sent" in done.stderr


def hostile_variables(elsewhere: str) -> dict[str, str]:
    """Return an environment that leads an export elsewhere, changes it, or turns it off."""
    variables = {
        f"OTEL_EXPORTER_OTLP_{signal}{name}": value
        for signal in ("", "TRACES_", "LOGS_")
        for name, value in {
            "ENDPOINT": elsewhere,
            "HEADERS": "x-evil=1,host=evil.example",
            "CERTIFICATE": "/nonexistent/certificate",
            "CLIENT_CERTIFICATE": "/nonexistent/client",
            "CLIENT_KEY": "/nonexistent/key",
            "COMPRESSION": "gzip",
            "TIMEOUT": "0.000001",
            "PROTOCOL": "grpc",
        }.items()
    }
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    variables |= {name: elsewhere for each in proxies for name in (each, each.lower())}
    return variables | {
        "OTEL_SDK_DISABLED": "true",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=evil,x=y",
        "OTEL_SERVICE_NAME": "evil",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_ATTRIBUTE_COUNT_LIMIT": "1",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1",
        "OTEL_SPAN_EVENT_COUNT_LIMIT": "0",
        "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER": "evil",
        "NO_PROXY": "",
        "no_proxy": "",
        "NETRC": "/nonexistent/netrc",
        "REQUESTS_CA_BUNDLE": "/nonexistent/bundle",
    }


async def test_the_environment_does_not_lead_an_export_elsewhere(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endpoint, headers, proxies, certificates, limits, sampler, resource and switch of the environment do not count."""
    await session_of(runner_of(tmp_path))
    with otlp_endpoint() as elsewhere:
        variables = hostile_variables(elsewhere.url)
        done = exported(endpoint, tmp_path, "--otlp", endpoint.url, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        check_spans(endpoint)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        live = tmp_path / "live"
        await session_of(runner_of(live, OtlpSettings(endpoint=endpoint.url), session="s2"))
        assert {span.trace_id for span in endpoint.spans} == {trace_id(each).to_bytes(16) for each in ("s1", "s2")}
        assert not elsewhere.bodies
    assert {facts["service.name"] for facts in endpoint.resources} == {"agent-hooks"}
    for headers in endpoint.headers:
        assert headers.keys() <= {"host", "accept-encoding", "content-type", "content-length", "user-agent"}
        assert headers["host"] in endpoint.url


def test_only_the_persons_settings_name_an_endpoint(command: Command, home: Path, endpoint: Endpoint) -> None:
    """A project's section `records` does not count, and a run of the host exports to the person's endpoint."""
    with otlp_endpoint() as elsewhere:
        mine = {"records": {"otlp": {"endpoint": endpoint.url, "headers": {"authorization": "Bearer x"}}}}
        (home / ".agent").mkdir()
        (home / ".agent" / "settings.json").write_text(json.dumps(mine))
        (command.project / ".agent").mkdir()
        theirs = {"records": {"otlp": {"endpoint": elsewhere.url, "inputs": True}}}
        (command.project / ".agent" / "settings.json").write_text(json.dumps(theirs))
        command("run", f"@bash echo {SECRET_WORDS}")
        assert endpoint.span("execute_tool bash")
        assert {headers["authorization"] for headers in endpoint.headers} == {"Bearer x"}
        command("records", "export")
        assert len([span for span in endpoint.spans if span.name == "execute_tool bash"]) == 2
        # Another endpoint does not get the headers.
        command("records", "export", "--otlp", elsewhere.url)
        assert elsewhere.spans
        assert not [headers for headers in elsewhere.headers if "authorization" in headers]
    assert SECRET_WORDS.encode() not in b"".join(endpoint.bodies)


def test_a_resident_server_exports_the_calls_of_another_agent(command: Command, home: Path, endpoint: Endpoint) -> None:
    """The spans bear the other agent's own ids; its environment does not count."""
    with otlp_endpoint() as elsewhere:
        use(home, endpoint)
        agent = OtherAgent(command)
        agent.environment |= hostile_variables(elsewhere.url)
        agent("SessionStart", source="startup")
        agent(tool_use_id="toolu_1", tool_input={"command": f"echo {SECRET_WORDS}"})
        ended = {**CALL, "tool_use_id": "toolu_1", "tool_response": {"stdout": SECRET_WORDS}}
        agent("PostToolUse", **(ended | {"hook_event_name": "PostToolUse"}))
        agent("SessionEnd", reason="other")
        deadline = time.monotonic() + PATIENCE
        while not any(span.name.startswith("invoke_agent") for span in endpoint.spans):
            assert time.monotonic() < deadline, [log.event_name for log in endpoint.logs]
            time.sleep(0.05)
        assert not elsewhere.bodies
    span = endpoint.span("execute_tool bash")
    facts = plain(span.attributes)
    assert span.parent_span_id == endpoint.span("invoke_agent claude-code").span_id
    assert facts["gen_ai.tool.call.id"] == "toolu_1"
    assert facts["agent_hooks.native_tool"] == "Bash"
    assert facts["gen_ai.agent.name"] == "claude-code"
    assert "agent_hooks.incomplete" not in facts
    assert SECRET_WORDS.encode() not in b"".join(endpoint.bodies)


def test_a_process_of_one_event_leaves_the_export_to_the_command(
    command: Command, home: Path, endpoint: Endpoint
) -> None:
    """Its answer is the agent's next step, so it does not load the SDK; `records export` sends its records."""
    use(home, endpoint)
    payload = {**CALL, "session_id": "s", "cwd": str(command.project)}
    command("bridge", "claude-code", stdin=json.dumps(payload))
    assert not endpoint.bodies
    command("records", "export")
    assert plain(endpoint.span("execute_tool bash").attributes)["agent_hooks.incomplete"] is True


def use(home: Path, endpoint: Endpoint) -> None:
    """Write the person's settings, which name an endpoint."""
    (home / ".agent").mkdir()
    mine = {"records": {"otlp": {"endpoint": endpoint.url}}}
    (home / ".agent" / "settings.json").write_text(json.dumps(mine))


@pytest.mark.parametrize(
    ("otlp", "problem"),
    [
        ({}, "otlp"),
        ({"endpoint": "localhost:4318"}, "key 'records.otlp.endpoint': expected a URL such as http://localhost:4318"),
        ({"endpoint": "http://u:p@h"}, "key 'records.otlp.endpoint': a URL with a password is shown in errors"),
        ({"endpoint": "http://h", "headers": {"a b": "c"}}, "key 'records.otlp.headers': 'a b' is no header"),
        ({"endpoint": "http://h", "headers": {"a": "c\r\nHost: d"}}, "key 'records.otlp.headers': 'a' is no header"),
        ({"endpoint": "http://h", "input": True}, "unknown key 'records.otlp.input'; did you mean 'inputs'"),
    ],
)
def test_a_wrong_endpoint_is_an_error_that_names_the_key(
    command: Command, home: Path, otlp: dict[str, Any], problem: str
) -> None:
    """A wrong setting stops the command; no record is sent to a place that was not meant."""
    (home / ".agent").mkdir()
    (home / ".agent" / "settings.json").write_text(json.dumps({"records": {"otlp": otlp}}))
    done = command("records", "export", code=None)
    assert done.returncode != 0
    assert problem in done.stderr


def test_export_without_an_endpoint_names_the_option_and_the_setting(command: Command) -> None:
    """The command cannot guess where records should go."""
    done = command("records", "export", code=2)
    assert "give --otlp URL, or set 'records.otlp.endpoint'" in done.stderr
    assert "--otlp: expected a URL" in command("records", "export", "--otlp", "x", code=2).stderr


WITHOUT = "import sys; sys.modules['opentelemetry.sdk'] = None; sys.modules['opentelemetry'] = None"


def test_without_the_extra_calls_go_on_and_an_error_names_the_remedy(
    command: Command, home: Path, endpoint: Endpoint
) -> None:
    """Records stay in their files, and `records export` names the command that installs the extra."""
    use(home, endpoint)
    command.first = WITHOUT
    done = command("run", "@bash echo hello")
    assert "hello" in done.stdout
    assert "pip install 'agent-hooks-runtime[otel]'" in done.stderr
    done = command("records", "export", code=1)
    assert done.stderr == f"agent-hooks: {exporting.INSTALL}\n"
    assert not endpoint.bodies


async def test_a_child_of_a_fork_exports_by_a_thread_of_its_own(tmp_path: Path, endpoint: Endpoint) -> None:
    """Threads do not survive a fork."""
    program = (
        # A fork during an import would leave half a module behind.
        "import os, sys, agent_hooks.records.otlp_exporter\n"
        "from agent_hooks.records.live_export import LiveExport\n"
        "from agent_hooks.settings import OtlpSettings\n"
        'line = b\'{"kind":"event","v":1,"prev":"","n":1,"time":"2026-01-02T03:04:05Z","clock":1,\'\n'
        'line += b\'"id":"%d","session":"s","event":"e"}\\n\'\n'
        "export = LiveExport(OtlpSettings(endpoint=sys.argv[1]), sys.argv[2], print)\n"
        "export.take('s.1.1.jsonl', line % 1)\n"
        "child = os.fork()\n"
        "export.take('s.1.1.jsonl', line % (2 if child else 3))\n"
        "export.close(30)\n"
        "child and os.waitpid(child, 0)\n"
    )
    done = await anyio.run_process([sys.executable, "-W", "ignore", "-c", program, endpoint.url, str(tmp_path)])
    assert done.stdout == b""
    assert sorted(body(log)["id"] for log in endpoint.named("agent_hooks.event")) == ["1", "2", "3"]


def test_ids_of_spans_are_fixed() -> None:
    """Another version of agent_hooks makes the same ids of the same records."""
    assert f"{trace_id('s1'):032x}" == sha256(b"trace\0s1")[:32]
    assert f"{agent_span_id('s1', 'main'):016x}" == sha256(b"agent\0s1\0main")[:16]
    assert f"{call_span_id('s1', 'c'):016x}" == sha256(b"call\0s1\0c")[:16]


async def test_a_head_that_was_exported_shows_that_a_file_was_rebuilt(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`records verify --head` takes the head of the log, also after more lines were written."""
    await session_of(runner_of(tmp_path))
    assert exported(endpoint, tmp_path, "--otlp", endpoint.url).returncode == 0
    head = plain(endpoint.named("agent_hooks.head")[-1].attributes)["agent_hooks.record.head"]
    first = plain(endpoint.logs[0].attributes)["agent_hooks.record.hash"]
    monkeypatch.setenv("AGENT_HOME", str(tmp_path))
    verify = [sys.executable, "-m", "agent_hooks", "records", "verify", "--head", head, "--head"]
    assert subprocess.run([*verify, first], capture_output=True, timeout=PATIENCE).returncode == 0
    assert subprocess.run([*verify, "0" * 64], capture_output=True, timeout=PATIENCE).returncode == 1
