"""The set of a project: which files belong to it, and the odd entries that a repository may put in their places."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.errors import SettingsError
from agent_hooks.settings import merge_settings
from agent_hooks.settings_file import read_settings_file
from agent_hooks.trees import ApprovedFile, SourceTree
from agent_hooks.trust.manifest import (
    MOST_BYTES,
    MOST_FILES,
    ProjectSet,
    SetFile,
    manifest_digest,
    named_in_settings,
    read_set,
)
from agent_hooks.trust.policy import Trust
from support import PATIENCE
from trust.approving import agent_file, approve, state


def names(found: ProjectSet) -> list[str]:
    """Return the names of the files in a set."""
    return [file.name for file in found.files]


def read(project: Path) -> ProjectSet:
    """Read the set of a project, which takes no longer than a test may wait."""
    begun = time.monotonic()
    found = read_set(str(project))
    assert time.monotonic() - begun < PATIENCE
    return found


def test_the_set_has_every_file_that_can_count(project: Path) -> None:
    """Policy data counts too; dotfiles, bytecode, sessions and other files of `.agent` do not."""
    for name in ("hooks/a.py", "hooks/pkg/__init__.py", "hooks/pkg/rules.json", "hooks/data.bin", "hooks/lib.so"):
        agent_file(project, name)
    for name in ("transformers/t.py", "settings.json", "command_intercept.yaml"):
        agent_file(project, name, "{}")
    for name in ("hooks/.hidden.py", "hooks/__pycache__/a.pyc", "sessions/s.jsonl", "notes.txt"):
        agent_file(project, name)
    assert names(read(project)) == [
        ".agent/command_intercept.yaml",
        *(f".agent/hooks/{name}" for name in ("a.py", "data.bin", "lib.so", "pkg/__init__.py", "pkg/rules.json")),
        ".agent/settings.json",
        ".agent/transformers/t.py",
    ]


def test_a_file_that_the_settings_name_belongs_to_the_set(project: Path, tmp_path: Path, home: Path) -> None:
    """By its path in the project, or by its absolute path outside of it; a package or a directory with all its files."""
    for path in (project / "gates" / "one.py", tmp_path / "two.py", home / "three.py", project / "pkg" / "__init__.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (project / "pkg" / "rules.json").write_text("{}")
    (project / "plain").mkdir()
    (project / "plain" / "x.py").write_text("")
    (project / "data").mkdir()
    (project / "data" / "notes.txt").write_text("")
    named = (
        f'["../gates/one.py", "{tmp_path}/two.py", "~/three.py", "../pkg", "../plain", "../data", "../gone.py", "/"]'
    )
    agent_file(project, "settings.json", f'{{"hooks": {named}}}')
    found = read(project)
    inside = [".agent/settings.json", "gates/one.py", "pkg/__init__.py", "pkg/rules.json", "plain/x.py"]
    assert names(found) == sorted([*inside, str(tmp_path / "two.py"), str(home / "three.py")])
    assert [text for text in found.left_out if text.startswith(("data ", "/ "))] == [
        "data is a directory without hooks, and is never used",
        "/ is a directory without hooks, and is never used",
    ]


def test_a_hook_spelled_with_another_kind_of_space_belongs_to_the_set(project: Path) -> None:
    """By the name in the settings, under which the loader looks for it."""
    (project / "my gate.py").write_text("")
    agent_file(project, "settings.json", '{"hooks": ["../my\u00a0gate.py"]}')
    assert "my\u00a0gate.py" in names(read(project))


def test_a_mixture_of_two_approved_sets_is_not_approved(project: Path) -> None:
    """A gate of one branch with the settings of another is a set that no person has read."""
    for gate, settings in (("one", '{"hookTimeout": 1}'), ("two", '{"hookTimeout": 2}')):
        agent_file(project, "hooks/gate.py", f"# {gate}\n")
        agent_file(project, "settings.json", settings)
        approve(project)
    agent_file(project, "hooks/gate.py", "# one\n")
    found = state(project)
    assert found.state == "changed"
    assert found.files is not None
    assert found.files[str(project / ".agent" / "hooks" / "gate.py")].data == b"# two\n"
    agent_file(project, "settings.json", '{"hookTimeout": 1}')
    found = state(project)
    assert (found.state, found.newest) == ("approved", False)


def test_the_digest_tells_names_and_contents_apart() -> None:
    """No name can pretend to be another line of the manifest."""
    digests = [
        manifest_digest({}),
        manifest_digest({"a": "0" * 64}),
        manifest_digest({"b": "0" * 64}),
        manifest_digest({"a": "1" * 64}),
        manifest_digest({"a": "0" * 64, "b": "0" * 64}),
        manifest_digest({f"a\n{'0' * 64}  b": "0" * 64}),
    ]
    assert len(set(digests)) == len(digests)


def test_entries_that_are_no_regular_files_are_left_out_and_named(project: Path) -> None:
    """A FIFO, a device, a socket or a loop must not hang the command, and can never be used."""
    hooks = agent_file(project).parent
    os.mkfifo(hooks / "fifo.py")
    (hooks / "device.py").symlink_to("/dev/zero")
    (hooks / "loop.py").symlink_to("loop.py")
    (hooks / "dangling.py").symlink_to("nowhere")
    (hooks / "around").symlink_to("..")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(".", os.O_RDONLY)
        os.chdir(hooks)
        try:
            server.bind("s.py")
        finally:
            os.chdir(here)
            os.close(here)
    found = read(project)
    assert found.problem is None
    assert set(names(found)) <= {".agent/hooks/gate.py", ".agent/hooks/around/hooks/gate.py"}
    left_out = "\n".join(found.left_out)
    for name in ("fifo.py", "device.py", "s.py"):
        assert f".agent/hooks/{name} is not a regular file, and is never used" in left_out
    assert ".agent/hooks/loop.py cannot be opened: Too many levels of symbolic links" in left_out
    assert ".agent/hooks/dangling.py is a link to a missing file" in left_out
    assert ".agent/hooks/around/hooks is a link to a directory above it" in left_out


def test_a_real_device_is_not_opened(project: Path) -> None:
    """Opening one can start a machine, and reading one may never end."""
    agent_file(project)
    try:
        os.mknod(project / ".agent" / "hooks" / "zero.py", 0o20666, os.makedev(1, 5))
    except PermissionError:
        # Only root may make a device; the link to one is tested above.
        return
    assert read(project).left_out == (".agent/hooks/zero.py is not a regular file, and is never used",)


def test_a_link_that_leads_out_of_the_project_is_read_and_shown_with_its_target(project: Path, tmp_path: Path) -> None:
    """Also when `.agent` or `hooks` themselves are links."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "gate.py").write_text("x")
    agent_file(project, "hooks/inner.py")
    (project / ".agent" / "hooks" / "link.py").symlink_to(tmp_path / "outside" / "gate.py")
    (project / ".agent" / "hooks" / "alias.py").symlink_to("inner.py")
    (project / ".agent" / "transformers").symlink_to(tmp_path / "outside")
    targets = {file.name: file.target for file in read(project).files}
    outside = str(tmp_path / "outside" / "gate.py")
    assert targets == {
        ".agent/hooks/alias.py": None,
        ".agent/hooks/inner.py": None,
        ".agent/hooks/link.py": outside,
        ".agent/transformers/gate.py": outside,
    }
    (project / ".agent").rename(tmp_path / "moved")
    (project / ".agent").symlink_to(tmp_path / "moved")
    assert all(file.target is not None for file in read(project).files)


NAMES: list[str | bytes] = [
    "two\nlines.py",
    "\x1b[2Jgone.py",
    "bidi\u202e.py",
    b"\xff\xfe.py",
    "a\tb.py",
    "-rf.py",
    "'q\".py",
    "\x7f.py",
]


def test_any_name_can_be_approved_kept_and_found_again(project: Path) -> None:
    """Names with newlines, escape sequences, bytes that are no UTF-8: the store gives back the very same."""
    hooks = agent_file(project).parent
    for name in NAMES:
        with open(os.path.join(os.fsencode(hooks), os.fsencode(name)), "w") as file:
            file.write("x")
    approve(project)
    assert state(project).state == "approved"
    (hooks / "gate.py").unlink()
    found = state(project)
    assert found.state == "changed"
    assert found.files is not None
    assert len(found.files) == len(NAMES) + 1
    assert found.message is not None
    assert "\n" not in found.message


@pytest.mark.parametrize("target", ["/", "/proc", "/usr", "/dev", "/sys"])
def test_a_link_to_a_directory_of_the_system_ends_soon(project: Path, target: str) -> None:
    """The walk has a limit, and nothing in there hangs it."""
    agent_file(project)
    (project / ".agent" / "hooks" / "all").symlink_to(target)
    read(project)


def test_links_that_give_a_few_directories_endless_paths_end_soon(project: Path) -> None:
    """Thirty levels of two links each are a thousand million paths, without a single file."""
    hooks = project / ".agent" / "hooks"
    for level in range(30):
        (hooks / f"d{level}").mkdir(parents=True)
        for side in "ab":
            (hooks / f"d{level}" / side).symlink_to(f"../d{level + 1}")
    (hooks / "d30").mkdir()
    assert "it has more than 2000 directories" in str(read(project).problem)


def test_a_directory_with_very_many_entries_ends_soon(project: Path) -> None:
    """Entries that do not count are limited too, and are not even listed to their end."""
    hooks = agent_file(project).parent
    for number in range(20_001):
        (hooks / f".{number}").touch()
    assert "more than 20000 entries; move data out of .agent" in str(read(project).problem)


def test_directories_nested_without_end_are_a_problem_of_the_set(project: Path) -> None:
    """No recursion error: the text names the limit."""
    hooks = agent_file(project).parent
    here = os.open(".", os.O_RDONLY)
    os.chdir(hooks)
    try:
        for _ in range(200):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
        os.close(here)
    assert "nested more than 50 deep" in str(read(project).problem)


def test_too_many_files_and_too_many_bytes_are_a_problem_of_the_set(project: Path) -> None:
    """A set of this size cannot be approved, and none of it is used."""
    with agent_file(project, "hooks/data.bin").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    found = read(project)
    assert (found.files, found.problem) == (
        (),
        f"the set of {project} cannot be approved: its files have more than 32 MiB; move data out of .agent",
    )
    (project / ".agent" / "hooks" / "data.bin").unlink()
    for number in range(MOST_FILES + 1):
        agent_file(project, f"hooks/{number}.txt", "")
    assert "it has more than 5000 files" in str(read(project).problem)
    assert state(project).files is None


def test_a_file_that_has_no_bytes_to_give_yet_hangs_nothing(project: Path) -> None:
    """Such a file of the system is regular by its kind; reading it would wait for an event."""
    if not os.access("/proc/kmsg", os.R_OK):
        return
    agent_file(project)
    (project / ".agent" / "hooks" / "k.py").symlink_to("/proc/kmsg")
    read(project)


# ---- the settings: the set must have the files that the settings name ------------------------------------------------

SETTINGS = [
    b'{"hooks": ["a.py"]}',
    b'{"hooks": ["a.py"], "hooks": ["b.py"]}',
    b'{"hooks": ["a.py"], "hook\\u0073": ["b.py"]}',
    b'\xef\xbb\xbf{"hooks": ["a.py"]}',
    '{"hooks": ["a.py"]}'.encode("utf-16"),
    '{"hooks": ["a.py"]}'.encode("utf-32"),
    b'{"hooks": ["a.py"], "hookTimeout": NaN}',
    b'{"hooks": ["a.py"], "hookTimeout": 1e999}',
    b'{"hooks": ["a\\ud800.py"]}',
    b'{"hooks": ["a\xff.py"]}',
    b'{"hooks": ["a\\u0000.py"]}',
    b'{"hooks": ["a\x01.py"]}',
    b'{"hooks": ["a.py"]} {"hooks": ["b.py"]}',
    b'{"hooks": ["a.py"],}',
    b'// {"hooks": []}\n{"hooks": ["a.py"]}',
    b'{"hooks": "a.py"}',
    b'{"hooks": {"a.py": 1}}',
    b'{"hooks": ["a.py", 1, null]}',
    b'{"Hooks": ["a.py"]}',
    b'["a.py"]',
    b'{"hooks": ["~nobody-of-that-name/a.py", "b.py"]}',
    b'{"hooks": ["/a.py", "//a.py", "", ".", "..", "../../../..", "~", "~/a.py", "a/../b.py"]}',
    b"[" * 200_000,
    b'{"hooks": ' + b"[" * 200_000,
    b"",
    b"\0\0\0\0",
]


def check_that_both_read_the_same(text: bytes, directory: Path) -> None:
    """Check that the set names each file that the settings name."""
    path = str(directory / "settings.json")
    tree = SourceTree(str(directory), str(directory.parent), {path: ApprovedFile(text, path)})
    named = set(named_in_settings(text, str(directory)))
    try:
        settings = merge_settings([tree])
    except SettingsError:
        # Then nothing of the file counts.
        return
    assert {hook for hook in settings.hooks if "\0" not in hook} <= named


@pytest.mark.parametrize("text", SETTINGS)
def test_the_set_and_the_settings_read_one_text_alike(project: Path, text: bytes) -> None:
    """A text with two meanings would show the person other files than those that run."""
    check_that_both_read_the_same(text, project / ".agent")
    agent_file(project, "settings.json", text)
    assert read(project).problem is None


@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(
            st.sampled_from(['"hooks"', ":", "[", "]", "{", "}", ",", '"a"', '"\\u0061"', "1", "null", " ", "\\", '"'])
        ).map(lambda parts: "".join(parts).encode()),
    )
)
def test_no_text_gives_the_settings_a_hook_that_the_set_has_not(text: bytes) -> None:
    """Random bytes and random pieces of JSON."""
    check_that_both_read_the_same(text, Path("/nowhere/.agent"))


def test_settings_nested_too_deeply_are_a_clear_error(project: Path) -> None:
    """No traceback, no hang."""
    path = agent_file(project, "settings.json", b"[" * 200_000)
    with pytest.raises(SettingsError, match="nested too deeply"):
        read_settings_file(path)


def test_a_file_that_changes_while_it_is_read_counts_with_the_bytes_that_were_hashed(project: Path) -> None:
    """The set holds the bytes of one read, and the digest is theirs."""
    path = agent_file(project)
    approve(project)
    found = Trust().sources(project).projects[0]
    path.write_text("raise SystemExit\n")
    assert found.files is not None
    assert found.files[str(path)].data == b"def register(api): ...\n"
    assert isinstance(found.found.files[0], SetFile)
