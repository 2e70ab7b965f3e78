"""Results of a tool: replaced, redacted, seen as failures, with context."""

from __future__ import annotations

from clients.cases.table import case, told
from clients.seat import Seat


@case("replaces a result", "replace", models=True, together=True)
def replace(seat: Seat) -> bool:
    seat.ready()
    # The id is put together by the shell, so that it is in the result only.
    run = seat.shell("printf 'cus_%s paid' 33333333")
    results = "\n".join(run.results)
    assert "paid" in results
    return "cus_***" in results and "cus_33333333" not in results


@case("hides a secret in a result", "redact", models=True, together=True)
def redact(seat: Seat) -> bool:
    seat.ready()
    token = "ghp_" + "0123456789" * 4
    (seat.project / "notes.txt").write_text(f"token = {token}\n")
    run = seat.shell("cat notes.txt")
    assert "token = " in run.context
    return token not in run.context and "[redacted" in run.context


@case("sees that a tool failed", "failure")
def failure(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo oh; exit 3")
    told(run, "oh")
    return any(line.get("failed") for line in seat.log())


@case("adds context to a result", "context_after", models=True, together=True)
def context_after(seat: Seat) -> bool:
    seat.ready()
    run = seat.shell("echo this is deprecated")
    return "ask before you build on it" in run.context
