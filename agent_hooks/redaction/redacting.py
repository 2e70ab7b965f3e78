"""The redactor: finds secrets in texts, in the outputs of tools and in their progress, and hides them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from agent_hooks.errors import HookUsageError
from agent_hooks.patterns import compile_pattern, pattern_problem
from agent_hooks.redaction.environment import environment_rules
from agent_hooks.redaction.kinds import KEY_END, builtin_rules, signs
from agent_hooks.redaction.rules import Secret, SecretRule, Span, pattern_rule
from agent_hooks.values.content import TextContent, ToolOutput
from agent_hooks.values.events import ToolResult
from agent_hooks.values.tool import OnUpdate

PATTERN_SECONDS = 1.0
"""Seconds that a pattern of the person's own may take on one text."""
_CARRY = 64 * 1024
"""Characters of an unfinished line that are kept between two progress updates."""
# Characters of a text that is searched for each literal: to compile the patterns of the signs takes longer.
_SHORT = 2000


class Redactor:
    """Finds secrets and puts `[redacted KIND]` in their place.

    `patterns`: regular expressions of your own, by the kind's name; `environ`: the variables whose secret values are
    hidden, this process's environment by default; `report_only`: find secrets, but change nothing.
    Raises `HookUsageError` for a pattern that is no regular expression.
    """

    def __init__(
        self,
        *,
        patterns: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        report_only: bool = False,
    ) -> None:
        self.report_only = report_only
        own = [_own_rule(kind, pattern) for kind, pattern in (patterns or {}).items()]
        values = sorted(environment_rules(os.environ if environ is None else environ), key=_longest_first)
        self._rules = (*values, *builtin_rules(), *own)
        # Each literal with the number of its rule; a rule without literals is always tried.
        self._literals = [(literal, number) for number, rule in enumerate(self._rules) for literal in rule.literals]
        self._always = [number for number, rule in enumerate(self._rules) if not rule.literals]
        self._several_lines = [form for rule in values for form in rule.literals if "\n" in form]
        kinds = "|".join(re.escape(kind) for kind in {rule.kind for rule in self._rules})
        self._marks = pattern_rule("", ("[redacted ",), rf"\[redacted (?:{kinds})\]")

    def redact(self, text: str) -> tuple[str, tuple[Secret, ...]]:
        """Return the text without its secrets, and the secrets; the very same text when there are none.

        A text on which a pattern of your own takes longer than a second is withheld as a whole.
        """
        try:
            secrets = self._find(text)
        except _TooSlowError as exc:
            withheld = f"[withheld: the redaction pattern {exc.kind} took more than {PATTERN_SECONDS:g} s]"
            kept = text if self.report_only else withheld
            return kept, (Secret(exc.kind, 0, len(text)),)
        if not secrets or self.report_only:
            return text, secrets
        parts, end = [], 0
        for secret in secrets:
            parts += [text[end : secret.start], f"[redacted {secret.kind}]"]
            end = secret.end
        return "".join([*parts, text[end:]]), secrets

    def output(self, output: ToolOutput) -> tuple[ToolOutput, tuple[Secret, ...]]:
        """Redact a tool's output: its text blocks, and every text in its details."""
        secrets: list[Secret] = []
        content = [self._block(block, secrets) for block in output.content]
        details = self._everywhere(output.details, secrets)
        if not secrets or self.report_only:
            return output, tuple(secrets)
        return ToolOutput(content, details, output.is_error), tuple(secrets)

    def event(self, event: ToolResult) -> ToolResult:
        """Return the event with a redacted result."""
        output, _ = self.output(ToolOutput(event.content, event.details, event.is_error))
        return replace(event, content=output.content, details=output.details)

    def progress(self, on_update: OnUpdate) -> OnUpdate:
        """Return a function that takes the progress updates of one tool call and passes them on, redacted.

        A line without its end is held back, and so is the beginning of a private key, because the secret may continue
        in the next update.  Each update may hold all of the text so far, or only the new part.
        """
        return on_update if self.report_only else _Progress(self, on_update)

    # ---- finding secrets

    def _find(self, text: str) -> tuple[Secret, ...]:
        rules = self._rules if len(text) > _SHORT else self._hinted(text)
        if not rules:
            return ()
        secrets: list[Secret] = []
        pieces = list(_cut(self._marks, [(0, text)], [])) if "[redacted " in text else [(0, text)]
        absent = () if len(text) <= _SHORT else {end for end, sign in signs().items() if sign.search(text) is None}
        for rule in rules:
            if rule.end in absent:
                continue
            if not rule.literals or any(literal in text for literal in rule.literals):
                pieces = list(_cut(rule, pieces, secrets))
        return tuple(sorted(secrets, key=lambda secret: secret.start))

    def _hinted(self, text: str) -> list[SecretRule]:
        """Return the rules, in order, that have a literal in a text, and those without literals."""
        found = {number for literal, number in self._literals if literal in text}
        return [self._rules[number] for number in sorted(found.union(self._always))] if found or self._always else []

    def _block(self, block: Any, secrets: list[Secret]) -> Any:
        return TextContent(self._text(block.text, secrets)) if isinstance(block, TextContent) else block

    def _text(self, text: str, secrets: list[Secret]) -> str:
        redacted, found = self.redact(text)
        secrets += found
        return redacted

    def _everywhere(self, value: Any, secrets: list[Secret]) -> Any:
        if isinstance(value, str):
            return self._text(value, secrets)
        if isinstance(value, Mapping):
            return {self._key(key, secrets): self._everywhere(item, secrets) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._everywhere(item, secrets) for item in value]
        if isinstance(value, Struct):
            fields = {name: self._everywhere(item, secrets) for name, item in asdict(value).items()}
            return replace(value, **fields)
        return value

    def _key(self, key: Any, secrets: list[Secret]) -> Any:
        return self._text(key, secrets) if isinstance(key, str) else key

    def unfinished(self, text: str) -> int:
        """Return the index from which on the text may be the beginning of a secret."""
        start = max(text.rfind("\n"), text.rfind("\r")) + 1
        begin = text.rfind("-----BEGIN ")
        if begin >= 0 and "PRIVATE KEY" in text[begin : begin + 100] and not KEY_END.search(text, begin, start):
            start = min(start, begin)
        for value in self._several_lines:
            for length in range(min(len(value), len(text)), 0, -1):
                if text.endswith(value[:length]):
                    start = min(start, len(text) - length)
                    break
        return start


class _TooSlowError(Exception):
    """A pattern of the person's own took too long; `kind` is the pattern's name."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def _own_rule(kind: str, pattern: str) -> SecretRule:
    if problem := pattern_problem(kind, pattern):
        raise HookUsageError(problem)
    compiled = compile_pattern(pattern)

    def find(text: str) -> Iterator[Span]:
        try:
            for match in compiled.finditer(text, timeout=PATTERN_SECONDS):
                if match.end() > match.start():
                    yield match.span()
        except TimeoutError:
            raise _TooSlowError(kind) from None

    return SecretRule(kind, (), find)


def _longest_first(rule: SecretRule) -> tuple[int, str]:
    return -len(rule.literals[0]), rule.kind


def _cut(rule: SecretRule, pieces: Iterable[tuple[int, str]], secrets: list[Secret]) -> Iterator[tuple[int, str]]:
    """Cut a rule's secrets out of the pieces of a text.

    Adds the secrets to `secrets`, and yields the pieces between them, each with its place in the text.
    """
    for offset, piece in pieces:
        if rule.literals and not any(literal in piece for literal in rule.literals):
            yield offset, piece
            continue
        end = 0
        for start, stop in rule.find(piece):
            if start < end:
                # Two literals of one rule: the second lies within the match of the first.
                continue
            secrets.append(Secret(rule.kind, offset + start, offset + stop))
            if start > end:
                yield offset + end, piece[end:start]
            end = stop
        if end < len(piece):
            yield offset + end, piece[end:] if end else piece


class _Progress:
    """Passes progress updates on, without secrets and without an end that may be the beginning of one.

    `_last`: the end of the last update; `_held`: the part of it that was held back.
    """

    def __init__(self, redactor: Redactor, on_update: OnUpdate) -> None:
        self._redactor = redactor
        self._on_update = on_update
        self._last = ""
        self._held = ""

    def __call__(self, update: ToolOutput) -> None:
        content = list(update.content)
        texts = [index for index, block in enumerate(content) if isinstance(block, TextContent)]
        if texts:
            first, last = texts[0], texts[-1]
            whole = update.text
            if self._held and self._last not in whole:
                # The update holds only the new part, so it continues where the last one was cut.
                content[first] = TextContent(self._held + _text(content[first]))
            text = _text(content[last])
            at = self._redactor.unfinished(text)
            self._held, self._last = text[at:][-_CARRY:], whole[-200:]
            content[last] = TextContent(text[:at])
        redacted, _ = self._redactor.output(ToolOutput(content, update.details, update.is_error))
        if redacted.text or redacted.details is not None or len(texts) < len(content):
            self._on_update(redacted)


def _text(block: Any) -> str:
    return str(block.text)


@cache
def _default() -> Redactor:
    return Redactor()


def redactor(input: Any, output: Any) -> None:
    """Redact `output.result`: a ready-made interceptor for `tool.after`."""
    output.result, _ = _default().output(output.result)
