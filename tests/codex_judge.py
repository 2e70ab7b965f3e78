"""A judge of answers to Codex: its own JSON schemas, and the rules that its parser adds to them.

`codex_schemas.json` holds the schemas of the answers, as they are in the program of Codex 0.171.0 (Apache-2.0,
github.com/openai/codex).  Each rule below stands for one message in that program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

SCHEMAS: dict[str, Any] = json.loads((Path(__file__).parent / "bridges/codex_schemas.json").read_text())
# Codex reads no answer there.
SILENT = ("SessionEnd", "PreModelRequest", "PostModelRequest")

Answer = Mapping[str, Any]


def refusal(event: str, answer: Answer) -> str | None:
    """Return the reason for which Codex drops an answer; `None` if it takes the answer."""
    if event in SILENT:
        return None if not answer else "this event takes no answer"
    error = next(_validator(event).iter_errors(answer), None)
    if error is not None:
        return str(error)
    return next((text for text, holds in _rules(event) if holds(answer)), None)


def _snake(event: str) -> str:
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in event).lstrip("-")


@cache
def _validator(event: str) -> Any:
    return jsonschema_rs.validator_for(SCHEMAS[f"{_snake(event)}.command.output"])


def _rules(event: str) -> list[tuple[str, Callable[[Answer], bool]]]:
    rules: list[tuple[str, Callable[[Answer], bool]]] = [
        (
            "decision:block without a non-empty reason",
            lambda each: "decision" in each and _is_blank(each.get("reason")),
        ),
        ("reason without decision", lambda each: "reason" in each and "decision" not in each),
        ("unsupported suppressOutput", lambda each: bool(each.get("suppressOutput"))),
        ("hookSpecificOutput of another event", lambda each: _own(each).get("hookEventName", event) != event),
    ]
    if event in ("PreToolUse", "PermissionRequest"):
        rules += [
            ("unsupported continue:false", lambda each: each.get("continue") is False),
            ("unsupported stopReason", lambda each: "stopReason" in each),
        ]
    if event == "PreToolUse":
        rules += _of_calls()
    if event == "PostToolUse":
        rules.append(("unsupported updatedMCPToolOutput", lambda each: "updatedMCPToolOutput" in _own(each)))
    if event == "PermissionRequest":
        later = ("updatedInput", "updatedPermissions", "interrupt")
        rules.append(("a field for later", lambda each: any(_own(each).get("decision", {}).get(key) for key in later)))
    return rules


def _of_calls() -> list[tuple[str, Callable[[Answer], bool]]]:
    return [
        ("unsupported decision:approve", lambda each: each.get("decision") == "approve"),
        ("unsupported permissionDecision:ask", lambda each: _decision(each) == "ask"),
        (
            "permissionDecision:allow alone",
            lambda each: _decision(each) == "allow" and "updatedInput" not in _own(each),
        ),
        ("updatedInput without allow", lambda each: "updatedInput" in _own(each) and _decision(each) != "allow"),
        ("deny without a reason", lambda each: _decision(each) == "deny" and _is_blank(_reason(each))),
        ("a reason without a decision", lambda each: _reason(each) is not None and _decision(each) is None),
    ]


def _own(answer: Answer) -> Mapping[str, Any]:
    own: Mapping[str, Any] = answer.get("hookSpecificOutput", {})
    return own


def _decision(answer: Answer) -> Any:
    return _own(answer).get("permissionDecision")


def _reason(answer: Answer) -> Any:
    return _own(answer).get("permissionDecisionReason")


def _is_blank(text: str | None) -> bool:
    return text is None or not text.strip()
