"""Rules about requests: deletions by HTTP, and changes of services that curl and its like reach by their addresses."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.rules.outside import only_tries
from agent_hooks.guards.shell.words import Word

_LOCAL = lazy_pattern(
    (
        r"(?:\w+://)?(?:[^/@]*@)?(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[?::1?\]?|host\.docker\.internal|"
        r"[\w.-]+\.(?:localhost|test|local))?(?::\d+)?(?:[/?].*)?"
    ),
    re.IGNORECASE,
)
CURL_VALUES = "dFTuHoXAbcKeEmwxrCDPQUYyz"
"""The letters of options of curl that take a value."""
CURL_LONG = (
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--data-ascii",
    "--form",
    "--form-string",
    "--upload-file",
    "--request",
    "--header",
    "--user",
    "--output",
    "--url",
    "--json",
    "--config",
    "--url-query",
    "--cookie",
    "--referer",
    "--user-agent",
    "--proxy",
    "--cacert",
    "--cert",
    "--key",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--post-data",
    "--post-file",
    "--body-data",
    "--body-file",
    "--method",
    "--output-document",
    "--write-out",
    "--mail-from",
    "--mail-rcpt",
    "--retry-delay",
    "--resolve",
    "--oauth2-bearer",
    "--limit-rate",
    "--range",
    "--interface",
    "--output-dir",
)
# Addresses of services, and of their calls, that lose or move something.
_LOSES = lazy_pattern(
    r"/_(?:delete_by_query|all/_close)\b|/_snapshot/[^/]+/[^/]+/_restore|/admin/tsdb/delete_series|"
    r"/_flush/force|[?&]_method=delete"
    r"|/(?:refunds?|payouts?|transfers?|reversals?)\b|api\.stripe\.com/v1/(?:charges|payment_intents|"
    r"customers/\w+/sources)\b"
    r"|/api/v\d/(?:queues|exchanges)/.*/contents|/shutdown$|/v1/sys/seal|[:/]\d*/?(?:destroy|delete|purge|"
    r"wipe|terminate|drop)(?:[/?_-]|$)",
    re.IGNORECASE,
)
# Addresses at which a request mutes alarms.
_MUTES = lazy_pattern(
    r"/(?:maintenance[_-]?windows?|silences?|downtimes?|mute(?:_all|-timings)?|snooze|alerts/disable)(?:[/?]|$)",
    re.IGNORECASE,
)
_BODY = lazy_pattern(
    r"<delete>|\bmutation\b.*\b(?:delete|remove|destroy|archive|purge|revoke|transfer)\w*|\"?deleteAll\"?|"
    r"\bdrop\s+(?:table|database)\b|"
    r"\"(?:action|method|operation|cmd)\"\s*:\s*\"(?:delete|destroy|drop|purge|terminate|shutdown)\w*\"",
    re.IGNORECASE | re.DOTALL,
)
_TESTS = lazy_pattern(r"\b(?:sk|rk|pk)_test_|sandbox\.|api\.sandbox|-sandbox\b", re.IGNORECASE)


def local(address: str) -> bool:
    """Return whether an address is one of this machine."""
    return bool(_LOCAL.fullmatch(address))


def addresses(command: Command, options: ParsedOptions) -> list[Word]:
    """Return the addresses of a command that are not of this machine."""
    found = [*options.operands, *options.value("--url")]
    return [word for word in found if not local(word)]


def curl(command: Command) -> None:
    """`curl -X DELETE`, and requests that lose something by their address or their body."""
    options = ParsedOptions(command.argv, CURL_VALUES if command.name != "wget" else "OPotTwQUeaiADIRXBl", CURL_LONG)
    there = addresses(command, options)
    if not there or options.has("--help", "--version"):
        return
    method = " ".join([*options.value("X", "--request", "--method")]).upper()
    data = " ".join(
        options.value(
            "d", "--data", "--data-raw", "--data-binary", "--json", "F", "--form", "--post-data", "--body-data"
        )
    )
    _judge(
        command,
        method,
        there,
        data,
        sends=bool(data or (options.has("I") is False and method in ("POST", "PUT", "PATCH"))),
    )


def _judge(command: Command, method: str, there: list[Word], data: str, *, sends: bool) -> None:
    if method == "DELETE":
        command.report("http-delete", "deletes something by a request")
    elif _TESTS.search(str(command)):
        return
    elif (method in ("POST", "PUT", "PATCH") or sends) and any(_LOSES.search(word) for word in there):
        command.report("http-delete", "deletes or moves something by a request")
    elif (method in ("POST", "PUT", "PATCH") or sends) and any(_MUTES.search(word) for word in there):
        command.report("monitoring", "mutes monitoring or alarms by a request")
    elif (data or method in ("POST", "PUT", "PATCH")) and _BODY.search(data):
        command.report("http-delete", "deletes something by a request")


def httpie(command: Command) -> None:
    """`http DELETE address`, `xh delete address`."""
    operands = ParsedOptions(command.argv, "abs", ("--auth", "--session", "--body", "--raw")).operands
    if not operands or only_tries(command):
        return
    method = str(operands[0]).upper()
    if re.fullmatch(r"[A-Z]{3,7}", method) and len(operands) > 1 and not local(operands[1]):
        _judge(command, method, operands[1:2], " ".join(operands[2:]), sends=method != "GET")


def api(command: Command) -> None:
    """`gh api -X DELETE path`, and mutations of its GraphQL."""
    words = command.argv[1:]
    if words[:1] != ["api"] or only_tries(command):
        return
    options = ParsedOptions(
        words, "XfFHqt", ("--method", "--field", "--raw-field", "--header", "--input", "--jq", "--template")
    )
    method = "".join(options.value("X", "--method")).upper()
    if method == "DELETE":
        command.report("http-delete", "deletes something by a request")
    elif "graphql" in options.operands:
        text = " ".join(options.value("f", "F", "--field", "--raw-field"))
        if re.search(
            r"\bmutation\b.*\b(?:delete|remove|transfer|archive|revoke|close)\w*", text, re.IGNORECASE | re.DOTALL
        ):
            command.report("http-delete", "deletes something by a request")


def grpc(command: Command) -> None:
    """`grpcurl host app.Users/DeleteUser`."""
    words = command.argv[1:]
    method = next((word for word in reversed(words) if re.fullmatch(r"[\w.]+[/.]\w+", word)), "")
    loses = re.search(r"[/.](?:Delete|Drop|Purge|Remove|Destroy|Terminate|Revoke)\w*$", method)
    if loses and not any(re.fullmatch(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?", word) for word in words):
        command.report("http-delete", "deletes something by a request")


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("grpcurl grpc_cli evans ghz", grpc),
    **rules_of("curl curlie wget", curl),
    **rules_of("http https xh xhs", httpie),
    **rules_of("gh glab", api),
}
