"""The check of plain English finds the patterns, spares innocent uses, and judges only new text."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from checks.prose.__main__ import in_files, main
from checks.prose.changes import MARK
from checks.prose.patterns import PATTERNS, Pattern, hits
from checks.prose.subjects import faults
from checks.prose.texts import read, sentences

ROOT = Path(__file__).parent.parent.parent
PLAIN = "The loop calls the handlers in order.\n\n"
WRONG = {
    "beside": ["A lock file beside the hook is read.", "Beside it is a link."],
    "in-place-of": ["It puts a link in the place of a file.", "Another file is in its place."],
    "absolute-verb": [
        "The row stands on its own line.",
        "It stands where the cursor was.",
        "The file lies in the project.",
        "The entry bears its name.",
        "The last row counts.",
        "It counts as one file.",
        "Such a name does not count here.",
        "Only approved sets count.",
        "They stand in a table.",
        "The run goes on, and nothing is lost.",
        "A later match waits.",
        "A call that waits and then ends.",
        "This holds for pages too.",
        "The rules hold for pages.",
        "The order holds when a hook is added.",
    ],
    "pronoun-head": [
        "The options are those of `run`.",
        "The name is that of the tool.",
        "Or one that ends with a slash.",
        "Only those that match are kept.",
        "It returns the ones which failed.",
    ],
    "is-no": ["It is no model.", "Files that are no transcripts.", "Such a file is none.", "It was no error."],
    "of-of": ["The names of the tools of a server.", "One of the lines of it."],
    "leading-of": ["Of two tools, the second wins.", "look: of the calls, only some are shown"],
    "semicolon": ["It stops; the next one runs.", "See `run`; it stops.", "It stops (twice); nothing is lost."],
    "person": ["A person is asked.", "The person's hooks run.", "Some people share a machine."],
    "old-adverb": [
        "It is read anew.",
        "The file meanwhile changed.",
        "It is thereby lost.",
        "The entry is gone for good.",
        "It fails again and again.",
        "It ends by itself.",
    ],
    "tell-whether": ["Tell whether a file exists."],
    "ours": ["A tool of ours.", "The names are ours, too."],
}
RIGHT = [
    "It is next to the hook, and besides, it is small.",
    "Pass it in place of the name.",
    "The place of the cursor is saved.",
    "It stands for the name, and stands out.",
    "A stand-in for the server, or a stand in for it.",
    "It counts the files.",
    "The counts are kept, and its counts.",
    "Return the count as an integer.",
    "The address count, not its length.",
    "It holds a list, and nobody holds the lock.",
    "It waits for the lock, waits until then, and waits a second.",
    "It waits `x` s.",
    "That is what is going on.",
    "Bear in mind that it ends.",
    "He lies about it.",
    "One of the files is read by those who ask.",
    "Say that tools run.",
    "There is no limit, and it is no longer read.",
    "Its path is None or no-op.",
    "A list of files, instead of the names of tools.",
    "The end of the file, and the name of it.",
    "A copy of it because of a fault.",
    "Of course it runs.",
    "of 172 answers",
    "text/html;charset=utf-8",
    "Run `a; b` now.",
    "`a`; `b`",
    "In first-person form.",
    "It is for good reasons.",
    "It can tell whether a file exists.",
    "It is yours, after hours.",
    'The word "beside" is old, and so is “in its place”.',
    "The option `beside`, ``ours`` and [a page](beside.md).",
    "Tests for <the person> and {person}.",
]


def names(text: str) -> list[str]:
    """Return the names of the patterns that a text has."""
    return [hit.name for each in sentences("pages", "page.md", 1, text) for hit in hits(each)]


@pytest.mark.parametrize(("name", "sentence"), [(name, each) for name, texts in WRONG.items() for each in texts])
def test_a_sentence_with_a_pattern_is_found(name: str, sentence: str) -> None:
    """Each row of the table finds its wrong sentences."""
    assert names(sentence) == [name]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_each_row_has_wrong_sentences_here_and_finds_its_own_example(pattern: Pattern) -> None:
    """A new row needs its sentences."""
    assert WRONG[pattern.name]
    assert pattern.regex.search(pattern.wrong.strip("`"))


@pytest.mark.parametrize("sentence", RIGHT)
def test_a_plain_sentence_is_not_found(sentence: str) -> None:
    """Other uses of the words, code, link targets and quoted words are fine."""
    assert names(sentence) == []


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("guards: allow rm of build output", []),
        ("host/tools, ui: process the rest", []),
        ("docs: focus on the reader", []),
        ("README.md: bring back the picture", []),
        ("look and list: address two faults", []),
        ('Revert "The old words"', []),
        ("fixup! guards: allow rm", []),
        ("guards: allow rm of build output in a directory that git ignores, as asked", ["subject-length"]),
        ("guards: allow rm; deny mv", ["subject-semicolon"]),
        ("Allow rm of build output", ["subject-form"]),
        ("The texts that users keep: read them once", ["subject-form"]),
        ("guards: allows rm", ["subject-mood"]),
        ("guards: allowed rm", ["subject-mood"]),
        ("guards: allowing rm", ["subject-mood"]),
        ("guards: The rule allows rm", ["subject-mood"]),
    ],
)
def test_a_subject_is_short_has_an_area_and_is_imperative(subject: str, expected: list[str]) -> None:
    """Words that only look like another form of a verb are known."""
    assert [name for name, _ in faults(subject)] == expected


def listed(path: Path, source: str) -> list[str]:
    """Return each hit of a file, as `line: kind: text`."""
    path.write_text(source)
    return [f"{hit.sentence.line}: {hit.sentence.kind}: {hit.sentence.text}" for hit in in_files([path], ROOT).hits]


def test_a_page_is_read_without_its_code_and_each_sentence_has_its_line(tmp_path: Path) -> None:
    """List items and table rows are texts of their own."""
    page = (
        "# A page\n\nHooks load in order. This row\nstands alone.\n\n```text\nIt stands alone.\n```\n\n"
        "1. The loop calls handlers.\n2. A person is asked.\n\n"
        "| word | meaning |\n|---|---|\n| `ours` | a tool of ours |\n"
    )
    assert listed(tmp_path / "page.md", page) == [
        "3: pages: This row stands alone.",
        "11: pages: A person is asked.",
        "15: pages: a tool of ours",
    ]


def test_docstrings_are_read_without_their_examples(tmp_path: Path) -> None:
    """The place is the sentence's line, also in the docstring of an attribute."""
    source = (
        '"""A module.\n\nIt is no class. For example::\n\n    It is no class.\n\n>>> "ours"\nIt is ours\n\n'
        'It is ours.\n"""\n\nLIMIT = 1\n"""It is read anew."""\n'
    )
    assert listed(tmp_path / "code.py", source) == [
        "3: docstrings: It is no class.",
        "10: docstrings: It is ours.",
        "14: docstrings: It is read anew.",
    ]


def test_comments_on_adjacent_lines_are_one_text(tmp_path: Path) -> None:
    """A sentence may continue on the next line. Code between two comments ends it, and a string is not a comment."""
    source = "# The row\n# stands alone. Fine.\nx = '# It is ours.'\n# It\n\n# is\n\n# ours\ny = 1  # by itself\n"
    assert [line for line in listed(tmp_path / "code.py", source) if "comments" in line] == [
        "1: comments: The row stands alone.",
        "9: comments: by itself",
    ]


def test_a_comment_behind_code_is_short_without_its_directives(tmp_path: Path) -> None:
    """The reason behind `noqa` may be 60 characters long."""
    reason = "a" * 29 + " " + "b" * 30
    source = f"x = 1  # noqa: S101, S102  # {reason}\ny = 1  # type: ignore[misc]  # {reason}!\n"
    assert listed(tmp_path / "code.py", source) == [f"2: trailing: {reason}!"]


def test_printed_texts_are_read_with_the_values_of_f_strings_as_code(tmp_path: Path) -> None:
    """A text in parts is one sentence on all its lines. Strings that are code are left out."""
    path = tmp_path / "code.py"
    source = (
        'raise ValueError(\n    f"{name} is no "\n    "model"\n)\nprint("One line.\\n\\nIt is ours.")\n'
        'run("const a = 1; const b = 2")\nrun("cd x && ls; true")\n'
    )
    assert listed(path, source) == ["2: printed texts: `x` is no model", "5: printed texts: It is ours."]
    assert [(each.line, each.last) for each in read(path, ROOT) if "model" in each.text] == [(2, 3)]


def test_strings_of_tests_are_data() -> None:
    """Only docstrings and comments of a test are prose."""
    found = in_files([Path(__file__)], ROOT)
    assert found.hits == []
    assert {each.kind for each in found.sentences} <= {"docstrings", "comments"}


class Project:
    """A git repository that has adopted the check in its second commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("README.md", "It is read anew.\n")
        self.commit("All of it is no subject; a person wrote it")
        self.adopt()

    def adopt(self) -> None:
        """Add the check."""
        self.write(MARK, '"""It is ours, in its place."""\n')
        self.commit("Some more; by itself")

    def git(self, *words: str) -> None:
        """Run git without the settings of this machine."""
        author = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false")
        subprocess.run(["git", *author, *words], cwd=self.root, check=True, capture_output=True)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message: str) -> None:
        """Commit all files."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose git ignores the settings of this machine."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project")


def judged(project: Project, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Return the exit code, and the hits that were printed."""
    code = main([], project.root)
    lines = capsys.readouterr().out.splitlines()
    return code, [above for above, below in pairwise(lines) if below.startswith("    write: ")]


def test_text_from_before_the_check_is_not_judged(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The commit that adds the check is the base, with its message and lines."""
    assert judged(project, capsys) == (0, [])


def test_committed_uncommitted_and_untracked_lines_are_judged(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence is judged when any of its lines is new. Its neighbours are not."""
    project.write("README.md", "It is read anew.\n\nThis row\nstands alone.\n")
    project.commit("docs: describe the row")
    project.write("README.md", "It is read anew. The last\none that matches.\n\nThis row\nstands alone.\n")
    project.write("docs/a page.md", "It is ours.\n")
    project.write("notes.md", "It is ours.\n")
    project.write('docs/"b".md', "It is ours.\n")
    project.git("add", 'docs/"b".md')
    assert judged(project, capsys) == (
        1,
        [
            "README.md:1: old-adverb: It is read anew.",
            "README.md:1: pronoun-head: The last one that matches.",
            "README.md:4: absolute-verb: This row stands alone.",
            'docs/"b".md:1: ours: It is ours.',
            "docs/a page.md:1: ours: It is ours.",
        ],
    )


def test_lines_that_moved_to_another_file_are_not_new(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A large move by script is judged by the lines that it changes."""
    project.write("agent_hooks/old.py", "# This row\n# stands alone.\ndef f():\n    # It is ours.\n    pass\n")
    project.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    project.commit("A module")
    project.adopt()
    project.git("rm", "--quiet", "agent_hooks/old.py")
    project.write(
        "agent_hooks/new.py", "class C:\n    # This row\n    # stands alone.\n\n    # It is read anew.\n    x = 1\n"
    )
    assert judged(project, capsys) == (1, ["agent_hooks/new.py:5: old-adverb: It is read anew."])


def test_a_commit_may_be_judged_alone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise the faults of others hide whether your own text has any."""
    project.write("docs/one.md", "It is ours.\n")
    project.commit("docs: describe one thing")
    project.write("docs/two.md", PLAIN)
    project.commit("docs: describe another thing")
    assert judged(project, capsys)[0] == 1
    assert main(["--since", "HEAD~1"], project.root) == 0
    assert main(["--since", "HEAD~2"], project.root) == 1
    assert main(["--since", "nowhere"], project.root) == 2
    assert "git rev-parse failed" in capsys.readouterr().err


def test_hits_beyond_the_limits_come_last(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """An allowed hit is not the reason of the failure."""
    project.write("README.md", "It stops; the next one runs.\n\n" + PLAIN * 60 + "It is ours.\n")
    assert main([], project.root) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Within the limits:"
    assert "semicolon" in lines[1]
    assert lines[3] == "Beyond the limits:"
    assert "ours" in lines[4]


def test_a_renamed_file_and_removed_lines_are_not_new(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that looks like the header of a diff is only a line."""
    project.write("docs/long.md", "It is ours.\n\n" + PLAIN * 20)
    project.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    project.commit("A page")
    project.adopt()
    project.git("mv", "docs/long.md", "docs/moved.md")
    project.write("README.md", "")
    project.write("docs/diff.md", "++ b/README.md\n")
    assert judged(project, capsys) == (0, [])


def test_commit_messages_are_judged_but_not_merges(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The body is prose, and the subject has its own rules. Commits from before the merge of the check are not judged."""
    project.git("checkout", "--quiet", "-b", "older", "HEAD~1")
    project.write("docs/older.md", PLAIN)
    project.commit("An old subject; of the time before")
    project.git("checkout", "--quiet", "main")
    project.git("merge", "--quiet", "--no-ff", "older", "--message", "Merge of ours; by itself")
    project.write("docs/page.md", PLAIN)
    project.commit("docs: added a page; a link\n\nIt was no page.")
    code, lines = judged(project, capsys)
    assert code == 1
    assert [line.split(":", 2)[2] for line in lines] == [
        " subject-semicolon: docs: added a page; a link",
        " subject-mood: docs: added a page; a link",
        " is-no: It was no page.",
    ]
    assert lines[0].startswith("commit ")
    assert lines[2].split(":")[1] == "3"


def test_a_merge_of_the_check_is_the_base_of_a_branch(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Text that the branch had before is not judged there."""
    project.git("checkout", "--quiet", "-b", "older", "HEAD~1")
    project.write("docs/older.md", "It is ours.\n")
    project.commit("An old subject; of the time before")
    project.git("merge", "--quiet", "--no-ff", "main", "--message", "Merge of ours; by itself")
    assert judged(project, capsys) == (0, [])


def test_hits_within_the_limits_are_notes(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """One in 200 sentences may have a pattern, and one in 50 a semicolon."""
    project.write("docs/page.md", "It is ours.\n\nOne; two.\n\nThree; four.\n\n" + PLAIN * 196)
    assert main([], project.root) == 1
    assert "ours: 1 of 199 sentences, at most 1 in 200 may have it" in capsys.readouterr().out
    project.write("docs/page.md", "It is ours.\n\nOne; two.\n\nThree; four.\n\n" + PLAIN * 197)
    code, lines = judged(project, capsys)
    assert code == 0
    assert len(lines) == 3


def test_many_rare_patterns_exceed_the_limit_of_all(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Each alone is within its limit."""
    wrong = [WRONG[name][0] for name in ("ours", "person", "beside", "is-no", "of-of")]
    project.write("docs/page.md", "\n\n".join(wrong) + "\n\n" + PLAIN * 195)
    assert main([], project.root) == 1
    assert "all patterns: 5 of 200 sentences, at most 1 in 50 may have one" in capsys.readouterr().out


def test_a_long_comment_behind_code_always_fails(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """No number of other sentences permits it."""
    project.write("docs/page.md", PLAIN * 300)
    project.write("agent_hooks/code.py", f"x = 1  # {'word ' * 13}\n")
    assert main([], project.root) == 1
    assert "trailing: 1, and none is allowed" in capsys.readouterr().out


def test_a_shallow_clone_is_an_error_with_its_remedy(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A clone that reaches the base is judged."""
    project.write("docs/page.md", "It is ours.\n")
    project.commit("docs: add a page")
    clones = [(depth, tmp_path / f"clone{depth}") for depth in (1, 2, 3)]
    for depth, clone in clones:
        project.git("clone", "--quiet", f"--depth={depth}", f"file://{project.root}", str(clone))
    assert [main([], clone) for _, clone in clones] == [2, 2, 1]
    assert "shallow" in capsys.readouterr().err


def test_without_git_or_the_commit_of_the_check_it_is_an_error(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the reason."""
    (tmp_path / "none").mkdir()
    assert main([], tmp_path / "none") == 2
    assert "not a git repository" in capsys.readouterr().err
    project.git("checkout", "--quiet", "HEAD~1")
    assert main([], project.root) == 2
    assert f"no commit has added {MARK}" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([], project.root) == 2
    assert "git is not installed" in capsys.readouterr().err


def test_all_has_the_worst_file_first_and_the_rates(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """It never fails."""
    project.write("docs/page.md", "It is ours. It is no page.\n")
    assert main(["--all"], project.root) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "checks/prose/patterns.py: 2 in 1 sentences: in-place-of 1, ours 1"
    assert lines[1:3] == [
        "docs/page.md: 2 in 2 sentences: ours 1, is-no 1",
        "README.md: 1 in 1 sentences: old-adverb 1",
    ]
    assert "ours                  2 of 4 sentences: 500.0 per 1,000, at most 5" in lines


def test_list_and_patterns_print_what_to_write(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Paths need one of the reports."""
    assert main(["--list", str(project.root / "README.md")], project.root) == 0
    assert capsys.readouterr().out.splitlines()[0] == "README.md:1: old-adverb: It is read anew."
    assert main(["--patterns"], project.root) == 0
    printed = capsys.readouterr().out
    assert all(f"{row.name} " in printed and row.instead in printed for row in PATTERNS)
    with pytest.raises(SystemExit):
        main(["README.md"], project.root)


def test_a_file_that_cannot_be_parsed_is_named(project: Project) -> None:
    """It is an error in one line."""
    project.write("agent_hooks/code.py", "def f(:\n")
    with pytest.raises(SystemExit, match=r"agent_hooks/code\.py: invalid syntax"):
        main([], project.root)


def test_the_command_prints_its_result() -> None:
    """On this tree it judges the text that is not committed yet, or says why it cannot."""
    command = [sys.executable, "-m", "checks.prose", "--since", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert "prose: " in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
