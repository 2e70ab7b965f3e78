"""Settings files, and the errors that name file, key, expected and found."""

from __future__ import annotations

import json
import math
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import HookRunner, Settings, SettingsError, discover_and_load_hooks, load_settings
from agent_hooks.settings import CompactionSettings, agent_home, resolve_path
from agent_hooks.validation import check_timeout


def write(directory: Path, text: object) -> Path:
    """Write `text` (bytes, or anything as JSON) as the settings of a home or a project."""
    path = directory / ".agent" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
    return path


def test_without_settings_files_the_defaults_apply(home: Path, project: Path) -> None:
    """The defaults are 30 s for a handler, no limit for `tool_call`, and no hooks."""
    assert load_settings(cwd=project, home=home) == Settings(hooks=(), hook_timeout=30.0, tool_call_timeout=None)


def test_milliseconds_become_seconds_and_null_means_no_limit(home: Path, project: Path) -> None:
    """The files have milliseconds, the settings have seconds."""
    write(home, {"hookTimeout": None, "toolCallTimeout": 1500})
    settings = load_settings(cwd=project, home=home)
    assert (settings.hook_timeout, settings.tool_call_timeout) == (None, 1.5)


def test_hooks_of_both_files_apply_and_of_a_single_value_the_projects_counts(home: Path, project: Path) -> None:
    """The agent home's hooks come first; the project's timeout wins, null included."""
    write(home, {"hooks": ["a.py"], "hookTimeout": 1000, "toolCallTimeout": 2000})
    write(project, {"hooks": ["b.py"], "hookTimeout": None})
    settings = load_settings(cwd=project, home=home)
    assert settings.hooks == (str(home / ".agent/a.py"), str(project / ".agent/b.py"))
    assert (settings.hook_timeout, settings.tool_call_timeout) == (None, 2.0)


@pytest.mark.anyio
async def test_hooks_of_both_settings_files_are_loaded_in_that_order(home: Path, project: Path) -> None:
    """The loader gets both lists."""
    for directory, name in ((home, "first.py"), (project, "second.py")):
        write(directory, {"hooks": [name]})
        (directory / ".agent" / name).write_text("def register(api): pass\n")
    settings = load_settings(cwd=project, home=home)
    result = await discover_and_load_hooks(settings.hooks, cwd=project, home=home)
    assert [hook.name for hook in result.hooks] == ["first", "second"]


def test_one_directory_that_is_home_and_project_is_read_once(home: Path) -> None:
    """In the home directory, the list of hooks is not doubled."""
    write(home, {"hooks": ["a.py"]})
    assert load_settings(cwd=home, home=home).hooks == (str(home / ".agent/a.py"),)


def test_configured_paths_are_resolved_by_their_first_character(home: Path, project: Path) -> None:
    """`~` is home, `~user` that user's home, a relative path starts at its settings file, an absolute one stays."""
    user = pwd.getpwuid(os.getuid())
    write(project, {"hooks": ["~/h.py", f"~{user.pw_name}/h.py", "rel/h.py", "../h.py", "/abs/h.py", "~"]})
    assert load_settings(cwd=project, home=home).hooks == (
        str(home / "h.py"),
        os.path.join(user.pw_dir, "h.py"),
        str(project / ".agent/rel/h.py"),
        str(project / "h.py"),
        "/abs/h.py",
        str(home),
    )


def test_without_a_given_home_the_tilde_is_the_users(home: Path, project: Path) -> None:
    """`~` follows $HOME."""
    write(project, {"hooks": ["~/h.py"]})
    assert load_settings(cwd=project).hooks == (str(home / "h.py"),)


def test_a_relative_home_counts_from_the_current_directory(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`home=` may be relative; the result is absolute."""
    monkeypatch.chdir(home.parent)
    assert agent_home(home.name) == str(home / ".agent")
    assert resolve_path("~/h.py", base=project, home=home.name) == str(home / "h.py")


def test_a_home_of_nobody_is_an_error_that_names_file_and_key(home: Path, project: Path) -> None:
    """`~nosuchuser` is not taken for a directory of that name."""
    path = write(project, {"hooks": ["a.py", "~no-such-user-here/h.py"]})
    with pytest.raises(SettingsError) as caught:
        load_settings(cwd=project, home=home)
    for part in (str(path), "hooks[1]", "no-such-user-here"):
        assert part in str(caught.value)


def test_the_agent_home_may_be_moved(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`home=` beats $AGENT_HOME, which beats `~/.agent`."""
    assert agent_home() == str(home / ".agent")
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "elsewhere"))
    assert agent_home() == str(tmp_path / "elsewhere")
    assert agent_home(home) == str(home / ".agent")
    monkeypatch.setenv("AGENT_HOME", "")
    assert agent_home() == str(home / ".agent")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"", 1),
        (b"hooks: []", 1),
        (b'{\n  "hooks": [\n', 2),
        (b'{\n\n  "hookTimeout": NaN\n}', 3),
        (b'{\n  "hooks": [],\n}', 3),
        (b"{}\n{}", 2),
        (b'{\n  "hooks":\n  ["\xff"]}', 3),
        (b"\0", 1),
    ],
)
def test_what_is_not_json_is_an_error_with_its_line(home: Path, project: Path, text: bytes, line: int) -> None:
    """Cut off, misspelled, not a number, not UTF-8: the error has file and line."""
    path = write(project, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(cwd=project, home=home)
    assert str(caught.value).startswith(f"{path}:{line}: is not JSON")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ([], ["a JSON object", "[]"]),
        ("hooks", ["a JSON object", "'hooks'"]),
        ({"hokTimeout": 1}, ["'hokTimeout'", "did you mean 'hookTimeout'"]),
        ({"hook_timeout": 1}, ["'hook_timeout'", "did you mean 'hookTimeout'"]),
        (
            {"zzz": 1},
            [
                "'zzz'",
                "known are: caution, checkpoints, compaction, disabledHooks, guards, hookTimeout, hooks, isolation,",
                "knownTools, model, records, redaction, thinking, toolCallTimeout, trust",
            ],
        ),
        ({"compaction": True}, ["'compaction'", "an object", "True"]),
        ({"compaction": {"enable": True}}, ["'compaction.enable'", "did you mean 'enabled'"]),
        ({"compaction": {"enabled": 1}}, ["'compaction.enabled'", "true or false", "1"]),
        ({"compaction": {"reserveTokens": -1}}, ["'compaction.reserveTokens'", "a whole number from 0 up", "-1"]),
        ({"compaction": {"keepRecentTokens": 1.5}}, ["'compaction.keepRecentTokens'", "a whole number", "1.5"]),
        ({"compaction": {"thresholdTokens": "9"}}, ["'compaction.thresholdTokens'", "a whole number or null", "'9'"]),
        ({"hooks": "a.py"}, ["'hooks'", "a list", "'a.py'"]),
        ({"hooks": None}, ["'hooks'", "a list", "None"]),
        ({"hooks": ["a.py", 3]}, ["'hooks[1]'", "a text", "3"]),
        ({"hooks": [{"path": "a.py"}]}, ["'hooks[0]'", "a text", "path"]),
        ({"hookTimeout": "3"}, ["'hookTimeout'", "a number or null", "'3'"]),
        ({"hookTimeout": True}, ["'hookTimeout'", "a number or null", "True"]),
        ({"toolCallTimeout": [1]}, ["'toolCallTimeout'", "a number or null", "[1]"]),
        ({"toolCallTimeout": 10**400}, ["toolCallTimeout", "out of range"]),
    ],
)
def test_unknown_keys_and_wrong_types_name_file_key_expected_and_found(
    home: Path, project: Path, content: object, parts: list[str]
) -> None:
    """The text of the error is enough to mend the file."""
    path = write(project, content)
    with pytest.raises(SettingsError) as caught:
        load_settings(cwd=project, home=home)
    for part in (str(path), *parts):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "text", ['{"hooks": ["gate.py"], "hooks": []}', '{"trust": {"required": true, "\\u0072equired": false}}']
)
def test_a_key_that_stands_twice_is_an_error(home: Path, project: Path, text: str) -> None:
    """Of two lists of hooks, the second one would take the gates of the first one away."""
    path = write(home, text.encode())
    with pytest.raises(SettingsError, match=r"key '(hooks|required)': is given twice") as caught:
        load_settings(cwd=project, home=home)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("path", ["x/" * 100_000 + "a.py", "x" * 5000])
async def test_a_path_that_is_too_long_is_an_error(home: Path, project: Path, path: str) -> None:
    """No system has a file there; it is neither searched for, nor shown whole."""
    write(home, {"hooks": [path]})
    with pytest.raises(SettingsError, match="is longer than any path can be") as caught:
        load_settings(cwd=project, home=home)
    assert len(str(caught.value)) < 1000
    loaded = await discover_and_load_hooks([project / path], cwd=project, home=home)
    assert "is longer than any path can be" in loaded.errors[0].error


@pytest.mark.parametrize("key", ["hookTimeout", "toolCallTimeout"])
@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, "3", False])
def test_a_deadline_that_cannot_be_one_is_an_error_that_names_the_setting(
    home: Path, project: Path, key: str, value: object
) -> None:
    """Zero, negative and strings are refused in either file."""
    path = write(home, {key: value})
    with pytest.raises(SettingsError) as caught:
        load_settings(cwd=project, home=home)
    for part in (str(path), repr(key), "expected"):
        assert part in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "30", True, [30]])
@pytest.mark.parametrize("name", ["timeout", "tool_call_timeout"])
def test_a_runner_refuses_a_deadline_that_cannot_be_one(project: Path, name: str, value: Any) -> None:
    """The text names the argument, as it names the key of a setting."""
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(SettingsError, match=rf"HookRunner\({name}=…\): expected seconds above 0"):
        HookRunner([], cwd=project, **wrong)


def test_null_means_no_deadline(project: Path) -> None:
    """`None` stays `None`."""
    assert check_timeout(None, "x") is None
    assert check_timeout(3, "x") == 3.0
    assert HookRunner([], cwd=project, timeout=None, tool_call_timeout=None)


def test_a_number_that_is_too_large_for_json_readers_is_an_error_with_the_file(home: Path, project: Path) -> None:
    """The line of `1e400` is unknown, but the file is named."""
    path = write(project, b'{\n"hookTimeout": 1e400}')
    with pytest.raises(SettingsError, match=f"^{path}: is not JSON: Number out of range"):
        load_settings(cwd=project, home=home)


def test_a_settings_file_that_cannot_be_read_is_an_error(home: Path, project: Path) -> None:
    """A directory in its place is an error; a file called `.agent` means that there are no settings."""
    (project / ".agent" / "settings.json").mkdir(parents=True)
    with pytest.raises(SettingsError, match=r"settings\.json: is not a regular file"):
        load_settings(cwd=project, home=home)
    (home / ".agent").write_text("")
    assert load_settings(cwd=home, home=home) == Settings()


def test_a_fifo_in_its_place_is_refused_and_does_not_hang(project: Path, home: Path) -> None:
    """Opening it would wait for a writer."""
    (project / ".agent").mkdir()
    os.mkfifo(project / ".agent" / "settings.json")
    with pytest.raises(SettingsError, match=r"settings\.json: is not a regular file"):
        load_settings(cwd=project, home=home)


@pytest.mark.parametrize("link", [".agent", ".agent/settings.json"])
def test_a_link_to_nothing_is_no_missing_file(home: Path, project: Path, link: str) -> None:
    """The person meant to have settings there, and without them a gate would be missing."""
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to("gone")
    with pytest.raises(SettingsError, match=rf"{link} is a symlink to a missing file"):
        load_settings(cwd=project, home=home)


def test_a_deadline_too_large_for_a_number_is_refused(project: Path) -> None:
    """An embedding program may pass any int."""
    with pytest.raises(SettingsError, match=r"HookRunner\(timeout=…\): .* is too large"):
        HookRunner([], cwd=project, timeout=10**400)


def test_of_a_compaction_setting_the_projects_value_counts(home: Path, project: Path) -> None:
    """The keys are merged one by one; a key that both files lack has its default."""
    write(home, {"compaction": {"reserveTokens": 5, "thresholdTokens": 7}})
    write(project, {"compaction": {"enabled": False, "thresholdTokens": None}})
    found = load_settings(cwd=project, home=home).compaction
    assert found == CompactionSettings(enabled=False, reserve_tokens=5, keep_recent_tokens=20_000)
