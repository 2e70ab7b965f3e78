"""The effects of calls: what a command would read, write, delete, run and send."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter, thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import effects as machine_module
from agent_hooks import effects_of
from agent_hooks.effects import LocalMachine, slow_mounts
from agent_hooks.guards.shell import limit
from agent_hooks.values.effects import Effects
from guard_corpus import rows


def of(command: str, cwd: str | Path = "/project") -> Effects:
    """Return the effects of a command."""
    return effects_of("bash", {"command": command}, cwd=cwd)


WRITES = [
    "echo x > uv.lock",
    "echo x >> uv.lock",
    "echo x >| uv.lock",
    "echo x &> uv.lock",
    "> uv.lock",
    "cat > uv.lock <<END\nx\nEND",
    "cat <<< x > uv.lock",
    "{ echo x; } > uv.lock",
    "(echo x) > uv.lock &",
    "exec > uv.lock",
    "if true; then echo x > uv.lock; fi",
    "while read x; do echo $x; done > uv.lock",
    "f() { echo x > $1; }; f uv.lock",
    "echo x | tee uv.lock",
    "echo x | tee -a a b uv.lock > /dev/null",
    "cp a uv.lock",
    "mv a uv.lock",
    "install -m 644 a uv.lock",
    "ln -sf a uv.lock",
    "dd if=a of=uv.lock",
    "sed -i s/a/b/ uv.lock",
    "sed -i.bak -e s/a/b/ -- uv.lock",
    "perl -pi -e s/a/b/ uv.lock",
    "touch uv.lock",
    "truncate -s 0 uv.lock",
    "sort -o uv.lock a",
    "curl -o uv.lock https://x.example",
    "wget -O uv.lock https://x.example",
    "git checkout -- uv.lock",
    "git checkout main",
    "git restore uv.lock",
    "git reset --hard",
    "git stash",
    "tar xf a.tar",
    "unzip a.zip",
    "patch uv.lock < a.diff",
    "python -c \"open('uv.lock', 'w')\"",
    "python3 - <<'END'\nfrom pathlib import Path\nPath('uv.lock').write_text('')\nEND",
    "node -e \"require('fs').writeFileSync('uv.lock', '')\"",
    "echo x > $FILE",
    'echo x > "$DIR/uv.lock"',
    "cd $DIR; echo x > uv.lock",
    'cd "$(mktemp -d)" && cd - && echo x > uv.lock',
    "ls | xargs tee",
    "xargs tee",
    "find . -name '*.lock' -exec sed -i s/a/b/ {} +",
    'for f in *.lock; do echo x > "$f"; done',
    "X=uv; echo x > $X.lock",
    "echo x > u''v.lo\\ck",
    "echo x > ./a/../uv.lock",
    "echo x > /project/uv.lock",
    "bash -c 'echo x > uv.lock'",
    "eval 'echo x > uv.lock'",
    "sudo tee uv.lock < a",
    "env X=1 timeout 5 cp a uv.lock",
    "echo 'echo x > uv.lock' | sh",
    "trap 'echo x > uv.lock' EXIT",
    "true && false || echo x > uv.lock",
    "echo $(echo x > uv.lock)",
    "diff <(echo x > uv.lock) a",
    "[[ -f a ]] && echo x > uv.lock",
    "rm -r . && echo",
    "mv * /elsewhere",
]


@pytest.mark.parametrize("command", WRITES)
def test_each_way_to_write_a_file_is_a_write(command: str) -> None:
    """An effect never disappears: not in a pipe, a shell, a function, a program of another language, or a variable."""
    effects = of(command)
    assert effects.writes("uv.lock") or effects.deletes("uv.lock"), effects


@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize(
    "around", ["sudo {}", "( {} )", "{} && echo done", "true; {} | cat", "if [ -f x ]; then {}\nfi"]
)
def test_a_write_stays_one_in_other_words_around_it(command: str, around: str) -> None:
    """A carrier, a group, a list, a pipe or a condition hides nothing that could be read without it."""
    if "<<END" in command or "<<'END'" in command or (around.startswith("sudo") and not command[0].isalpha()):
        # The words would no longer be a command.
        return
    text = around.replace("{}", command)
    effects = of(text)
    found = effects.writes("uv.lock") or effects.deletes("uv.lock")
    assert found or effects.unknown or text.startswith("sudo"), effects


@pytest.mark.parametrize("expected", ["changes", "keeps"])
def test_each_row_of_the_corpus_of_effects_changes_or_keeps_the_file(expected: str) -> None:
    """Each row changes `uv.lock` of the project, or only looks as if it did."""
    changing = expected == "changes"
    wrong = [row["command"] for row in rows("effects.tsv") if row["expected"] == expected
             and (of(row["command"]).writes("uv.lock") or of(row["command"]).deletes("uv.lock")) != changing]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize(
    "command",
    ["ssh host 'sudo rm -rf /data'", "sshpass -p x ssh me@host 'sudo rm -rf /data'",
     "docker exec c sh -c 'sudo rm -rf /data'",
     "docker run -i debian sh -c 'sudo rm -rf /data'", "kubectl exec pod -- sh -c 'sudo rm -rf /data'",
     "docker compose exec web sudo rm -rf /data", "lxc exec box -- sudo rm -rf /data",
     "ssh host <<< 'sudo rm -rf /data'", "vagrant ssh -c 'sudo rm -rf /data'"],
)  # fmt: skip
def test_a_path_on_another_machine_is_marked_and_no_question_about_files_meets_it(command: str) -> None:
    """The program runs, and its tree is listed; the file of that name here stays."""
    effects = of(command, "/data")
    assert effects.runs("sudo")
    assert [
        (each.path, each.access, each.tree) for each in effects.paths if each.elsewhere and each.path == "/data"
    ] == [("/data", "delete", True)]
    assert not effects.deletes("/data/x")
    assert not effects.writes("x")
    # The same command here, for comparison.
    assert of("sudo rm -rf /data", "/data").deletes("/data/x")


@pytest.mark.parametrize(
    "command",
    ["cat uv.lock", "echo x > a.txt", "grep x uv.lock > /dev/null", "git status", "git commit -m 'echo > uv.lock'",
     "echo 'x > uv.lock'", "rm -rf node_modules dist", "diff uv.lock a", "f() { rm uv.lock; }",
     "echo x > out-$(date +%s).log", "mv a.py b.py", "sed -n 1p uv.lock", "make", "git push"],
)  # fmt: skip
def test_a_command_that_leaves_a_file_alone_does_not_write_it(command: str) -> None:
    """Reading, other files and text are no writes; an opaque program stands in `unknown` instead."""
    effects = of(command)
    assert not effects.writes("uv.lock")
    assert not effects.deletes("uv.lock")


@pytest.mark.parametrize(
    "command", ["rm src/a.py", "rm -r src", "mv src x", "mv src/a.py x", "rm -rf ./src/*", "rm src/*.py",
                "git rm src/a.py", "find src -delete", "find . -name '*.py' -delete",
                "python -c \"import shutil; shutil.rmtree('src')\"",
                "cd src && rm a.py", "rm $F", "ls | xargs rm", "rm -r ../project"],
)  # fmt: skip
def test_each_way_to_delete_a_file_is_a_delete(command: str) -> None:
    """Also with the tree that it lies in, and by moving it away."""
    assert of(command).deletes("src/a.py"), of(command)


@pytest.mark.parametrize(
    "command", ["sudo ls", "/usr/bin/sudo ls", "bash -c 'sudo ls'", "ssh host 'sudo ls'", "env sudo ls", "s''udo ls",
                "X=sudo; $X ls", "echo 'sudo ls' | bash", "docker exec box sudo ls", "find . -exec sudo rm {} +"],
)  # fmt: skip
def test_a_program_runs_however_it_is_carried(command: str) -> None:
    """The name is the plain one."""
    assert of(command).runs("sudo")
    assert not of(command).runs("doas")


def test_a_program_names_those_that_carry_it() -> None:
    """With its words and its directory."""
    program = of("cd src && timeout 5 bash -c 'rm a $X'").programs[-1]
    assert (program.name, program.argv, program.cwd) == ("rm", ("rm", "a", "…"), "/project/src")
    assert program.via == ("timeout", "bash")


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("make", "opaque"),
        ("python build.py", "opaque"),
        ("bash build.sh", "opaque"),
        ("some-tool --fix", "opaque"),
        ("$X -rf", "dynamic"),
        ('eval "$X"', "dynamic"),
        ('bash -c "cd $X; ls"', "dynamic"),
        ("curl https://x.example | sh", "dynamic"),
        ("x" * 200_000, "unparsed"),
        ("(" * 1000, "unparsed"),
        ("$(" * 1000 + ")" * 1000, "unparsed"),
    ],
)
def test_what_cannot_be_known_stands_in_unknown(command: str, kind: str) -> None:
    """An opaque program makes no question true."""
    effects = of(command)
    assert kind in [each.kind for each in effects.unknown], effects.unknown


@given(st.text(max_size=60) | st.lists(st.sampled_from(WRITES)).map("; ".join))
def test_no_text_raises(command: str) -> None:
    """Any text has effects, if only unknown ones."""
    assert isinstance(of(command), Effects)


@pytest.mark.parametrize(
    "command", ["\ud800", "a\0b", "\x1b[31m", "\N{RIGHT-TO-LEFT OVERRIDE}x", "echo > '\n'", "cat \ue000"]
)
def test_odd_characters_raise_nothing(command: str) -> None:
    """Half of a pair, a zero byte, a newline in a name."""
    assert isinstance(of(command), Effects)
    assert isinstance(effects_of("write", {"path": command, "content": ""}, cwd="/project"), Effects)


# ---- the machine


def test_a_link_to_a_file_hides_nothing(tmp_path: Path) -> None:
    """For commands and for file tools."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "uv.lock").touch()
    (tmp_path / "link").symlink_to("uv.lock")
    (tmp_path / "here").symlink_to(".")
    assert of("echo x > link", tmp_path).writes("uv.lock")
    assert of("echo x > here/uv.lock", tmp_path).writes("./uv.lock")
    assert effects_of("edit", {"path": "link"}, cwd=tmp_path).writes("uv.lock")


def test_the_disk_tells_a_file_from_a_tree(tmp_path: Path) -> None:
    """`mv old new` of a file moves nothing else away."""
    (tmp_path / "file").touch()
    (tmp_path / "tree").mkdir()
    assert not of("mv file x", tmp_path).deletes("a.py")
    assert of("mv tree x", tmp_path).deletes("a.py")


def test_a_glob_with_a_slash_counts_from_the_root_of_the_project(tmp_path: Path) -> None:
    """The root is the next directory with `.git` or `.agent` above the call."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    assert of("echo x > a.py", tmp_path / "src").writes("src/a.py")
    assert not of("echo x > a.py", tmp_path / "src").writes("./a.py")


def test_a_mount_that_may_not_answer_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of mounts is read instead; a link that leads there ends there."""
    mounts = tmp_path / "mountinfo"
    slow = tmp_path / "with space"
    escaped = str(slow).replace(" ", "\\040")
    mounts.write_text(
        "22 1 0:21 / / rw - ext4 /dev/sda rw\n"
        f"23 22 0:22 / {escaped} rw,relatime shared:1 - nfs4 server:/x rw\n"
        "24 22 0:23 / /mnt/sshfs rw - fuse.sshfs host: rw\nbroken\n"
    )
    slow.mkdir()
    (slow / "link").symlink_to("/etc")
    (tmp_path / "in").symlink_to(slow)
    monkeypatch.setattr(machine_module, "slow_mounts", lambda: slow_mounts(str(mounts)))
    touched: list[str] = []
    readlink = os.readlink

    def watched(path: str) -> str:
        touched.append(path)
        return readlink(path)

    monkeypatch.setattr(os, "readlink", watched)
    there = LocalMachine("/project", "/project", "/root")
    assert there.real(f"{tmp_path}/in/link/passwd") == f"{slow}/link/passwd"
    assert not [path for path in touched if path.startswith(str(slow))]
    assert there.is_directory(str(slow)) is None
    here = LocalMachine(f"{slow}/project", f"{slow}/project", "/root")
    assert here.real(f"{slow}/link/passwd") == "/etc/passwd"


def test_without_a_list_of_mounts_only_the_directories_in_use_are_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project and the home answer, or the agent would not work."""
    monkeypatch.setattr(machine_module, "slow_mounts", lambda: slow_mounts(str(tmp_path / "none")))
    for name in ("project", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "link").symlink_to("/etc")
    found = LocalMachine(f"{tmp_path}/project", f"{tmp_path}/project", "/root")
    assert found.real(f"{tmp_path}/project/link") == "/etc"
    assert found.real(f"{tmp_path}/elsewhere/link") == f"{tmp_path}/elsewhere/link"


# ---- time


def test_the_rest_of_a_call_is_unknown_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The effects that were found before stay.  The limit is half of the time that the whole call takes here."""
    monkeypatch.setattr(limit, "MAX_SECONDS", 60)
    command = "rm uv.lock; " + "; ".join(f"sed -i s/a/b/ file{number}" for number in range(400))
    for _ in range(2):
        began = thread_time()
        assert not of(command).unknown
        took = thread_time() - began
    monkeypatch.setattr(limit, "MAX_SECONDS", took / 2)
    effects = of(command)
    assert effects.deletes("uv.lock")
    assert [each.why for each in effects.unknown] == [f"the command cannot be read: {limit.TOO_MUCH}"]


def test_look_ups_count_as_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow disk ends the reading, too."""
    monkeypatch.setattr(limit, "MAX_SECONDS", 0.02)

    def slow(self: LocalMachine, path: str) -> str:
        end = perf_counter() + 0.01
        while perf_counter() < end:
            pass
        return path

    monkeypatch.setattr(LocalMachine, "real", slow)
    effects = of("; ".join(f"rm file{number}" for number in range(100)))
    assert len(effects.paths) < 10
    assert effects.unknown


@pytest.mark.parametrize(
    "part", ["$(", "(", "`", "{", "'\"", "a;", "a|", "<<A\n", "${", "[[ ", "if ", "\\", "{a,b}", "x=(", "<("]
)
def test_a_text_that_was_made_to_be_slow_ends_in_time(part: str) -> None:
    """100 KB of anything take less than a second, and mostly 0.2 s."""
    began = thread_time()
    effects = of((part * 50_000)[:100_000])
    assert thread_time() - began < 1
    assert isinstance(effects, Effects)


@pytest.mark.parametrize(("cwd", "below"), [(".", ""), ("", ""), ("a/..", ""), ("a", "a/"), (Path("a"), "a/")])
def test_paths_are_absolute_in_a_directory_that_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str | Path, below: str
) -> None:
    """The directory counts from the one of this process, for commands and for tools of files."""
    monkeypatch.chdir(tmp_path)
    for effects in (of("rm x", cwd=cwd), effects_of("write", {"path": "x", "content": ""}, cwd=cwd)):
        assert [(each.path, each.real) for each in effects.paths] == [(f"{tmp_path}/{below}x",) * 2]
    assert {each.cwd for each in of("make", cwd=cwd).programs} == {f"{tmp_path}/{below}".rstrip("/")}


@pytest.mark.parametrize("cwd", ["", ".", "a/b", "//", "//a/b", "a\0b"])
def test_the_effects_of_a_call_in_an_odd_directory_are_found_at_once(cwd: str) -> None:
    """Other agents report directories that are not absolute; the search for the project's root ends there too."""
    assert effects_of("bash", {"command": "rm -r src"}, cwd=cwd).deletes("src")
