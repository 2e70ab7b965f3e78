"""The programs that act on something that effects do not name, and the uses of programs that a person accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.effects import effects_of
from agent_hooks.guards.base import GuardedCall
from agent_hooks.host.caution import Caution, _acts, acting, uses_of
from agent_hooks.values.answers import Ask
from agent_hooks.values.effects import Effects, Program, Unknown

ACT = """
git commit -m x | git -C part commit --amend | git add -A | git fetch | git reset HEAD~1 | git tag v1 | git tag -a v1 -m x
git branch topic | git branch -v topic | git branch --list -D topic | git branch --unset-upstream | git -c a=b gc
git remote add a b | git notes add | git update-ref refs/heads/a HEAD | git rm --cached a | git restore --staged .
git stash store x | git worktree lock x | git reflog delete a | git symbolic-ref HEAD refs/heads/a | git hash-object -w a
git submodule init | git no-such-verb | git --git-dir x push | git bundle create a.bundle HEAD
curl -X POST localhost | curl -XDELETE localhost:9200/i | curl -sd a=b localhost | curl --data-raw=x localhost
curl -F a=@b localhost
curl --request PUT localhost | curl --json '{}' localhost | curl -T f localhost | curl -d@f localhost
wget --post-data=x localhost | wget --method=DELETE localhost | http POST localhost | http localhost a=b
http put localhost/x
ip link set eth0 down | hostname other | date -s 12:00 | ssh-add -D | ssh-add key | gpg -c a | gpg --import a
"""
LOOK = """
git status | git log -p | git -C part diff | git --no-pager show HEAD:a | git branch | git branch -avv
git branch --show-current
git branch --list 'to*' | git branch -r --contains HEAD --sort=-committerdate | git tag | git tag -l 'v*' | git tag -n3
git remote -v | git remote show origin | git stash list | git stash show -p | git worktree list | git reflog
git reflog show main | git notes | git notes show HEAD | git submodule status | git symbolic-ref HEAD | git hash-object a
git config --get user.name | git --version | git ls-remote | git lfs ls-files | git bundle verify a.bundle
curl localhost | curl -fsSL -o/dev/null localhost | curl -X GET localhost | curl -o data.json localhost/data -H 'X: d'
wget localhost | http localhost a==b | http GET localhost | ip addr show | ip -br a | hostname -f | date | date +%F
ssh-add -l | gpg --list-keys | gpg --verify a.sig | ls | cat a
"""


def split(lines: str) -> list[str]:
    """Return the commands of a table."""
    return [each.strip() for line in lines.strip().splitlines() for each in line.split(" | ")]


@pytest.mark.parametrize("command", split(ACT))
def test_a_program_that_acts_is_found(tmp_path: Path, command: str) -> None:
    """Although it changes no file of the working tree, and sends nothing to another machine."""
    assert [*acting(effects_of("bash", {"command": command}, cwd=tmp_path))] != []


@pytest.mark.parametrize("command", split(LOOK))
def test_a_program_that_looks_is_none(tmp_path: Path, command: str) -> None:
    """The person is asked about it neither first nor while planning."""
    assert [*acting(effects_of("bash", {"command": command}, cwd=tmp_path))] == []


@given(
    st.sampled_from(["git", "curl", "wget", "http", "ip", "hostname", "date", "ssh-add", "gpg"]),
    st.lists(
        st.one_of(st.sampled_from(["branch", "-a", "--list", "-v", "tag", "-l", "-X", "--", "="]), st.text()),
        max_size=9,
    ),
)
def test_any_words_of_a_program_are_judged_without_an_error(name: str, words: list[str]) -> None:
    """Also those that no program takes."""
    assert isinstance(_acts(name, [name, *words]), bool)


def test_many_words_take_no_time() -> None:
    """Neither do words that fit no pattern at the very end."""
    for head in ("git branch", "git tag --list", "git remote show", "git hash-object", "hostname", "ip", "date", "gpg"):
        for word in ("-a", "--list", "x", "-l x"):
            assert isinstance(_acts(head.split()[0], [*head.split(), *[word] * 20_000, "\n"]), bool)


@pytest.mark.parametrize(
    ("command", "uses"),
    [
        ("python -m unittest -q 2>&1 | tail -20", {"python -m unittest"}),
        ("cd part && PYTHONPATH=. python3 -m pytest a.py", {"python3 -m pytest"}),
        ("python script.py --fast", {"python script.py"}),
        ("npm run build", {"npm run build"}),
        ("npm test -- --watch", {"npm test"}),
        ("pytest -q -k 'a b' tests", {"pytest"}),
        ("make", {"make"}),
        ("make -j4 deploy", {"make -j4 deploy"}),
        ("git add -A && git commit -m 'a b'", {"git add", "git commit"}),
        ("git -C part commit -m x", {"git -C part commit"}),
        ("timeout 60 make test", {"make test"}),
        ("uv run pytest", {"pytest"}),
        ("bash -c 'make test'", {"make test"}),
        ("./run.sh now", {"./run.sh now"}),
        ("make test X=1", {"make test"}),
        ("go run tool.go", {"go run tool.go"}),
        ("bun run tool.ts", {"bun run tool.ts"}),
        ("java -cp . Main", {"java -cp . Main"}),
        ("python -u script.py", {"python -u script.py"}),
        # Nothing of these can be accepted as a whole.
        ("make test > out.txt", set()),
        ("make test; rm -r src", set()),
        ("make $TARGET", set()),
        ("$PROGRAM test", set()),
        ("ssh host make test", set()),
        ("docker run image make test", set()),
        ("python -c 'import subprocess; subprocess.run(x)'", set()),
        ("python -W ignore script.py", set()),
        ("bash -x script.sh", set()),
        ("curl -T a https://example.org && make test", set()),
        ("kill 1; make test", set()),
        ("pip install x && make test", set()),
        ("sudo make test", set()),
        ("touch a", set()),
        ("cat a", set()),
    ],
)
def test_a_use_of_a_program_is_its_first_words(tmp_path: Path, command: str, uses: set[str]) -> None:
    """Where a command does no more than run such programs."""
    assert {" ".join(use) for use in uses_of(effects_of("bash", {"command": command}, cwd=tmp_path))} == uses


def test_a_part_that_is_known_only_later_has_no_use() -> None:
    """Even if its text looks like that of a program."""
    program = Program("make", ("make", "test"))
    assert uses_of(Effects(programs=(program,), unknown=(Unknown("opaque", "make test", ""),))) == {("make", "test")}
    assert uses_of(Effects(programs=(program,), unknown=(Unknown("dynamic", "make test", ""),))) == set()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("npm test -- -q | tail -3", "each npm test"),
        ("npm test; npm run build", "each npm run build with npm test"),
        ("npm test > a", "npm test > a"),
        ("rm a", "rm a"),
    ],
)
def test_an_answer_that_is_kept_counts_for_the_uses_of_programs(tmp_path: Path, command: str, words: str) -> None:
    """A command that does more counts by itself; the question says which it is."""
    caution = Caution()
    caution.level = "ask"
    answer = caution.judge(GuardedCall(tool_name="bash", input={"command": command}, cwd=str(tmp_path)))
    assert isinstance(answer, Ask)
    assert answer.words == (words,)
    assert answer.message == (f"an answer that is kept counts for {words}" if words.startswith("each ") else "")
