"""The values of environment variables whose names mark them as secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agent_hooks.redaction.rules import SecretRule, pattern_rule

SHORTEST_VALUE = 8
"""Characters of a secret value; shorter values would match by chance."""
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:api_?)?(?:key|keys|token|secret|password|passwd|passphrase|credential|credentials|pat|pwd)(?:_|\d*$)"
    r"|(?:token|secret|password|apikey|accesskey)$",
    re.IGNORECASE,
)
# These names only resemble those of secrets.
_NO_SECRETS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
_PLACEHOLDERS = frozenset(
    ("anonymous", "changeme", "development", "disabled", "localhost", "optional", "password", "production", "required")
)


def secret_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables with a secret name, each mapped to that name.

    Left out are values of less than 8 characters, paths, placeholders such as `changeme`, and repetitions of one
    character.
    """
    values: dict[str, str] = {}
    for name, value in environ.items():
        stripped = value.strip()
        if name in _NO_SECRETS or not _SECRET_NAME.search(name) or len(stripped) < SHORTEST_VALUE:
            continue
        if stripped.startswith(("/", "~/", "./")) or stripped.lower() in _PLACEHOLDERS or len(set(stripped)) == 1:
            continue
        if stripped not in f"[redacted env:{name}]":
            values.setdefault(stripped, name)
    return values


def environment_rules(environ: Mapping[str, str]) -> Iterator[SecretRule]:
    """Yield a rule for each secret value: as it is, and as JSON and URLs write it."""
    values = secret_values(environ)
    if not values:
        return
    # Imported here, because one event of another agent mostly has no such variable.
    import json
    from urllib.parse import quote

    for value, name in values.items():
        # The longest form comes first, because one form may begin another.
        forms = sorted({value, json.dumps(value)[1:-1], quote(value, safe="")}, key=lambda form: (-len(form), form))
        yield pattern_rule(f"env:{name}", tuple(forms), "|".join(map(re.escape, forms)))
