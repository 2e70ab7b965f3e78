"""The redactor: finds secrets in texts, in the outputs of tools and in their progress, and hides them."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from agent_hooks.errors import HookUsageError
from agent_hooks.patterns import compile_pattern, pattern_problem
from agent_hooks.redaction.formless import NETRC_OPEN
from agent_hooks.redaction.kinds import KEY_END, any_sign, builtin_rules, environment_rules, kinds_problem, signs
from agent_hooks.redaction.named import NAMED, may_hold_names
from agent_hooks.redaction.signs import EDGE, Secret, SecretRule, Span, pattern_rule, searchable
from agent_hooks.values.content import TextContent, ToolOutput
from agent_hooks.values.events import ToolResult
from agent_hooks.values.tool import OnUpdate

PATTERN_SECONDS = 1.0
"""Seconds that a pattern of the person's own may take on one text."""
_CARRY = 64 * 1024
"""Characters at the end of a long unfinished line that stay held back, because a secret may begin there."""
_LONGEST = 1024 * 1024
"""Characters of an unfinished line that a stream holds back."""
# Characters of a text that is searched for each literal, and the number of such texts.  A search for signs is faster, but
# to compile its patterns takes longer than all that a process for one event does.
_SHORT = 2000
_FEW = 100


class Redactor:
    """Finds secrets and puts `[redacted KIND]` in their place.

    `patterns`: regular expressions of your own, by the kind's name; `environ`: the variables whose secret values are
    hidden, this process's environment by default; `report_only`: find secrets, but change nothing; `disabled`: the
    known kinds that are no secrets here.
    Raises `HookUsageError` for a pattern that is no regular expression, and for an unknown kind.
    """

    def __init__(
        self,
        *,
        patterns: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        report_only: bool = False,
        disabled: Collection[str] = (),
    ) -> None:
        self.report_only = report_only
        off = frozenset(disabled)
        if problem := kinds_problem(off):
            raise HookUsageError(problem)
        own = [_own_rule(kind, pattern) for kind, pattern in (patterns or {}).items()]
        values = sorted(environment_rules(os.environ if environ is None else environ), key=_longest_first)
        known = [(number, rule) for number, rule in enumerate(builtin_rules()) if rule.kind not in off]
        self._rules = (*values, *(rule for _, rule in known), *own)
        # The places of the known kinds among the rules, by the numbers that the signs name them by.
        self._places = {number: place for place, (number, _) in enumerate(known, len(values))}
        # The literals with the places of their rules, by a text that each holds.
        self._literals: dict[str, list[tuple[str, int]]] = {}
        for place, rule in enumerate(self._rules):
            for literal in rule.literals:
                if rule.end:
                    self._literals.setdefault(rule.end, []).append((literal, place))
        self._unsigned = [
            (each, place) for place, rule in enumerate(self._rules) if not rule.end for each in rule.literals
        ]
        self._always = [place for place, rule in enumerate(self._rules) if not rule.literals and rule.kind != NAMED]
        self._named = next((place for place, rule in enumerate(self._rules) if rule.kind == NAMED), None)
        self._few = 0
        self._several_lines = [form for rule in values for form in rule.literals if "\n" in form]
        kinds = "|".join(re.escape(kind) for kind in {rule.kind for rule in (*self._rules, *builtin_rules())})
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

    def hide(self, text: str) -> str:
        """Return the text without its secrets."""
        return self.redact(text)[0] if text else text

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
        if not (rules := self._wanted(text)):
            return ()
        search = Search(text, self._marks.find(text) if "[redacted " in text else ())
        for rule in rules:
            search.add(rule)
        return search.secrets()

    def _wanted(self, text: str) -> list[SecretRule]:
        """Return the rules, in order, that a text has a sign or a literal of, and those that are always tried."""
        data = searchable(text)
        found = {place for literal, place in self._unsigned if literal in text}
        if self._named is not None and may_hold_names(data):
            found.add(self._named)
        if len(data) <= _SHORT and self._few < _FEW:
            self._few += 1
            for end, literals in self._literals.items():
                if end in text:
                    found.update(place for literal, place in literals if literal in text)
        # In a short text, one search for all signs together is faster.
        elif len(data) > _SHORT or any_sign().search(data):
            for sign in signs():
                if numbers := sign.numbers_in(data):
                    found.update(self._places[number] for number in numbers if number in self._places)
        if not found and not self._always:
            return []
        return [self._rules[number] for number in sorted(found.union(self._always))]

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
        entry = text.rfind("machine", max(0, len(text) - 1000))
        if entry >= 0 and NETRC_OPEN.match(text, entry):
            start = min(start, entry)
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


class RedactedStream:
    """Takes the pieces of a text as bytes and returns the part that can be written, without secrets.

    A line without its end is held back, and so is an unfinished private key.  Bytes that are no UTF-8 stay as they are.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """Return the bytes that can be written now; `final`: nothing follows, so nothing is held back."""
        text = self._held + self._decoder.decode(data, final)
        at = len(text) if final else self._redactor.unfinished(text)
        if len(text) - at > _LONGEST:
            at = self._place_in(text)
        self._held = text[at:]
        return self._redactor.redact(text[:at])[0].encode("utf-8", "surrogateescape")

    def _place_in(self, text: str) -> int:
        """Return an index near the end of a long text that no secret crosses."""
        at = len(text) - _CARRY
        _, secrets = self._redactor.redact(text)
        return next((each.start for each in secrets if each.start < at < each.end), at)


class Search:
    """The secrets that are found in a text.

    `marks`: the spans of the marks of an earlier redaction, in which no rule is tried.
    """

    def __init__(self, text: str, marks: Iterable[Span]) -> None:
        self._text = text
        self._taken = list(marks)
        self._secrets: list[Secret] = []

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secrets, in order."""
        return tuple(sorted(self._secrets, key=lambda secret: secret.start))

    def add(self, rule: SecretRule) -> None:
        """Add the secrets of a rule."""
        spans = list(self._spans(rule, 0, self._masked()) if rule.framed else self._in_pieces(rule))
        if spans:
            self._secrets += [Secret(rule.kind, start, end) for start, end in spans]
            self._taken = sorted([*self._taken, *spans])

    def _in_pieces(self, rule: SecretRule) -> Iterator[Span]:
        """Yield the spans of a rule's secrets in each part of the text that is left."""
        for offset, piece in self._pieces():
            if not rule.literals or not self._taken or any(literal in piece for literal in rule.literals):
                yield from self._spans(rule, offset, piece)

    def _spans(self, rule: SecretRule, offset: int, piece: str) -> Iterator[Span]:
        last = 0
        for start, end in rule.find(piece):
            # Two literals of one rule: the second lies within the match of the first.
            if start >= last:
                yield offset + start, offset + end
                last = end

    def _pieces(self) -> Iterator[tuple[int, str]]:
        """Yield the parts of the text that are left, each with its place."""
        last = 0
        for start, end in [*self._taken, (len(self._text), 0)]:
            if last < start:
                yield last, self._text[last:start]
            last = end

    def _masked(self) -> str:
        """Return the text with `EDGE` in place of each character that is a secret already."""
        parts, last = [], 0
        for start, end in self._taken:
            parts += [self._text[last:start], EDGE * (end - start)]
            last = end
        return "".join([*parts, self._text[last:]]) if parts else self._text
