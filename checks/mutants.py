"""Delete one statement at a time, or negate one condition, and print each mutant that no test catches.

`python -m checks.mutants` does so for the rooms where events are dispatched and tool calls are judged.  A mutant is
caught when a test fails or hangs.  Each mutant that is left needs a test, or a reason in `checks/mutants.toml`.

How it is fast.  One process imports the package and collects all tests.  A first run notes which lines each test
executes, and how long it takes.  Then each mutant gets a fork of that process.  The fork swaps the code of one function,
and runs the tests that execute the line: first the test that caught the mutant the last time, then the fastest ones.
A mutant of a statement that runs while its module is imported, or that no test executes, gets a fresh process instead,
which imports the mutant and runs the tests of the module.  Results are kept in a file.  They count until the code of the
module or of the tests changes; docstrings and comments are no code.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from time import monotonic
from types import CodeType, FunctionType
from typing import NamedTuple

import coverage
import pytest

from checks import fresh
from checks.forking import Ending, Job, run_jobs, run_test
from checks.mutations import Mutant, codes_in, compiled, mutants_of

CODE = ["agent_hooks/dispatch", "agent_hooks/pipeline", "agent_hooks/concurrency/deadlines"]
TESTS = [
    "tests/dispatch",
    "tests/pipeline",
    "tests/concurrency",
    "tests/runner",
    "tests/hooks",
    "tests/bridges",
    "tests/transformers",
    "tests/values",
    "tests/test_redaction.py",
    "tests/host/test_compaction.py",
    "tests/host/test_agent.py",
]
_ITERABLE_COROUTINE = 0x100
"""The flag that `types.coroutine` sets in the code of a function."""
_FRESH = 300.0
"""Seconds that the tests of a module may take in a fresh process."""
_BEGAN = monotonic()


class Options(argparse.Namespace):
    """The command line."""

    code: list[str]
    tests: list[str]
    state: Path
    reasons: Path
    changed: str | None
    seconds: float
    workers: int


class Measured(NamedTuple):
    """The times and lines of each test, from a run without mutants."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[int]]]
    """For each test and file, the lines that the test executes."""
    failed: list[str]


# ---- the state that is kept ------------------------------------------------------------------------------------------


def digest_of(paths: Iterable[Path]) -> str:
    """Return a digest of the contents of files."""
    return _digest(b"".join(f"{path}\0".encode() + path.read_bytes() + b"\0" for path in sorted(paths)))


def digest_of_code(source: str) -> str:
    """Return a digest of a module that stays the same when docstrings, comments or line numbers change."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return _digest(ast.dump(tree).encode())


_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class Record(NamedTuple):
    """The outcome of one mutant, and the digests of the files that it depends on."""

    mutant: str
    module: str
    tests: str
    """Of all tests for a mutant that was missed, else of the file of the test that caught it."""
    result: str
    """`caught`, `hung` or `missed`."""
    by: str
    """The test that failed or hung."""


class State:
    """The records of earlier runs, in a file of JSON lines; the last line for a mutant counts."""

    def __init__(self, path: Path, sources: dict[str, str], items: list[pytest.Item], tests: Iterable[Path]) -> None:
        self.records: dict[str, Record] = {}
        self._modules = {module: digest_of_code(source) for module, source in sources.items()}
        digests = {each: digest_of_code(each.read_text()) for each in {item.path for item in items}}
        self._digests = {item.nodeid: digests[item.path] for item in items}
        every = {each.absolute(): digest_of_code(each.read_text()) for each in tests}
        self._tests = _digest("".join(every[each] for each in sorted(every)).encode())
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            for line in path.read_text().splitlines():
                record = Record(**json.loads(line))
                self.records[record.mutant] = record
        self._output = path.open("w")
        for record in self.records.values():
            self._write(record)

    def known(self, mutant: Mutant) -> Record | None:
        """Return the record of a mutant if the files are still the same."""
        record = self.records.get(mutant.key)
        if record is None or record.module != self._modules[mutant.module]:
            return None
        return record if record.tests == self._digest_for(record.by) else None

    def _digest_for(self, test: str) -> str:
        return self._digests.get(test, "") if test else self._tests

    def killer(self, mutant: Mutant) -> str:
        """Return the test that failed for the mutant the last time, or an empty text."""
        record = self.records.get(mutant.key)
        return record.by if record is not None and record.result == "caught" else ""

    @property
    def hanging(self) -> set[str]:
        """The tests that hung for a mutant."""
        return {record.by for record in self.records.values() if record.result == "hung"}

    def keep(self, mutant: Mutant, ending: Ending) -> Record:
        """Write an outcome down."""
        result = {"passed": "missed", "failed": "caught", "hung": "hung"}[ending.result]
        by = "" if result == "missed" else ending.test
        record = Record(mutant.key, self._modules[mutant.module], self._digest_for(by), result, by)
        self.records[mutant.key] = record
        self._write(record)
        return record

    def close(self) -> None:
        """Close the file."""
        self._output.close()

    def _write(self, record: Record) -> None:
        self._output.write(json.dumps(record._asdict()) + "\n")
        self._output.flush()


def reasons_in(path: Path) -> dict[str, str]:
    """Return the reason for each mutant that no test can catch, by the mutant's key."""
    rows = tomllib.loads(path.read_text()).get("mutant", []) if path.exists() else []
    reasons = {}
    for row in rows:
        key = "::".join([row["module"], row["function"], row["kind"], row["statement"], str(row.get("nth", 1))])
        reasons[key] = row["reason"]
    return reasons


# ---- the measuring run -----------------------------------------------------------------------------------------------


def measure(items: list[pytest.Item], code: list[Path], options: Options, temporary: Path) -> Measured:
    """Run the tests without mutants, or take the result of an earlier run of the same files."""
    kept = options.state.with_suffix(".lines.json")
    tests = {item.nodeid: item.path for item in items}
    digest = digest_of([*code, *set(tests.values())])
    if kept.exists():
        found = json.loads(kept.read_text())
        if found["digest"] == digest and found["seconds"].keys() == tests.keys():
            return Measured(found["seconds"], found["lines"], found["failed"])
    shares = [items[number :: options.workers] for number in range(options.workers)]
    outputs = [temporary / f"measured-{number}.json" for number in range(options.workers)]
    jobs = [_measuring(share, code, output) for share, output in zip(shares, outputs, strict=True) if share]
    for _, ending in run_jobs(jobs, options.workers, temporary):
        if ending.result != "passed":
            raise SystemExit(f"without any mutant, {ending.test} {ending.result}")
    parts = [json.loads(output.read_text()) for output in outputs if output.exists()]
    measured = Measured({}, {}, [])
    for part in parts:
        measured.seconds.update(part["seconds"])
        measured.lines.update(part["lines"])
        measured.failed.extend(part["failed"])
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"digest": digest, **measured._asdict()}))
    return measured


def _measuring(items: list[pytest.Item], code: list[Path], output: Path) -> Job:
    """Return the job that runs a share of the tests under coverage, and writes the result to a file."""
    measured = Measured({}, {}, [])
    tracer = coverage.Coverage(data_file=None, include=[str(path) for path in code], config_file=False)

    def passes(item: pytest.Item, following: pytest.Item | None) -> bool:
        tracer.switch_context(item.nodeid)
        began = monotonic()
        if not run_test(item, following):
            measured.failed.append(item.nodeid)
        measured.seconds[item.nodeid] = monotonic() - began
        return True

    def finish() -> None:
        tracer.stop()
        data = tracer.get_data()
        lines: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for path in code:
            for line, tests in data.contexts_by_lineno(str(path)).items():
                for test in tests:
                    lines[test][os.path.relpath(path)].append(line)
        output.write_text(json.dumps(measured._replace(lines=lines)._asdict()))

    return Job(items, [600.0] * len(items), tracer.start, passes, finish)


# ---- the mutants -----------------------------------------------------------------------------------------------------


class Functions:
    """The functions of the mutated modules, by file, qualified name and first line."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources
        self._found: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                self._found[_place_of(each.__code__)].append(each)

    def mutate(self, mutant: Mutant) -> None:
        """Swap the code of the function that a mutant is in, and of the functions around that."""
        filename = os.path.abspath(mutant.module)
        places = {(filename, name, line) for name, line in mutant.codes}
        swapped = 0
        for code in codes_in(compiled(self._sources[mutant.module], mutant, filename)):
            for function in self._found[_place_of(code)] if _place_of(code) in places else ():
                flags = function.__code__.co_flags & _ITERABLE_COROUTINE
                function.__code__ = code.replace(co_flags=code.co_flags | flags)
                swapped += 1
        if not swapped:
            raise LookupError(f"{mutant}: no loaded function is at this place")


def _place_of(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Choice:
    """Which tests run for a mutant, in which order, and how long each may take."""

    def __init__(self, items: list[pytest.Item], measured: Measured, state: State) -> None:
        self._state = state
        self._seconds = measured.seconds
        self._items = {item.nodeid: item for item in items if item.nodeid not in measured.failed}
        self._tests: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._by_module: dict[str, list[str]] = defaultdict(list)
        self._killers: dict[str, set[str]] = defaultdict(set)
        self._hanging = state.hanging
        for test in self._items:
            for path, lines in measured.lines.get(test, {}).items():
                self._by_module[path].append(test)
                for line in lines:
                    self._tests[path, line].append(test)

    def tests_of(self, mutant: Mutant) -> list[pytest.Item]:
        """Return the tests that execute the lines of a mutant, in the order in which they run.

        First comes the test that caught the mutant the last time, then those that caught others in the same function,
        then the fastest ones.  Tests that hung for some mutant are the last, because their limits take long.

        Python 3.11 does not trace a suspended frame any more into which an exception was thrown.  The last tests of a
        function that can suspend are therefore those that execute any line of it.
        """
        tests, others = self._executing(mutant, mutant.lines), self._executing(mutant, mutant.suspending)
        killer, killers = self._state.killer(mutant), self._killers[mutant.function]

        def rank(test: str) -> tuple[bool, bool, bool, bool, float]:
            hangs = test in self._hanging
            return test != killer, test not in tests, hangs, test not in killers, self._seconds[test]

        return [self._items[test] for test in sorted(tests | others, key=rank)]

    def _executing(self, mutant: Mutant, lines: Iterable[int]) -> set[str]:
        return {test for line in lines for test in self._tests.get((mutant.module, line), ())}

    def tests_of_module(self, mutant: Mutant) -> list[pytest.Item]:
        """Return the tests that execute some line of a mutant's module, the fastest ones first."""
        return [self._items[test] for test in sorted(self._by_module[mutant.module], key=self._seconds.__getitem__)]

    def limits(self, tests: list[pytest.Item]) -> list[float]:
        """Return the seconds that each test may take: far more than it takes without a mutant."""
        return [5 + 10 * self._seconds[test.nodeid] for test in tests]

    def learn(self, mutant: Mutant, ending: Ending) -> None:
        """Remember the test that caught a mutant."""
        if ending.result == "failed":
            self._killers[mutant.function].add(ending.test)
        elif ending.result == "hung":
            self._hanging.add(ending.test)


class Hunt:
    """The run over all mutants, as a plugin of pytest: it takes the place of the loop that runs the tests."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.code = [path for each in options.code for path in _python_files(Path(each))]
        self.sources = {str(path): path.read_text() for path in self.code}
        self.records: dict[Mutant, Record] = {}
        self.report: Callable[[], int] | None = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests for each mutant, and prepare the report; pytest prints its own first."""
        if session.testsfailed:
            return True
        for path in self.code:
            # Some are imported only when they are needed; here that would be in the forks.
            import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
        # The factory has no public way to get another folder.
        temporary = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        measured = measure(session.items, [path.absolute() for path in self.code], self.options, temporary)
        for test in measured.failed:
            print(f"left out, because it fails without any mutant: {test}")
        state = State(self.options.state, self.sources, session.items, self._test_files())
        try:
            self._hunt(state, Choice(session.items, measured, state), temporary)
        finally:
            state.close()
        return True

    def _test_files(self) -> set[Path]:
        """Return the files of the tests, and the helpers in the top folder of the tests."""
        paths = [Path(each) for each in self.options.tests]
        return {each for path in paths for each in (*_python_files(path), *Path(path.parts[0]).glob("*.py"))}

    def _hunt(self, state: State, choice: Choice, temporary: Path) -> None:
        reasons = reasons_in(self.options.reasons)
        mutants = [mutant for path, source in self.sources.items() for mutant in mutants_of(path, source)]
        stale = {key for key in reasons if key.partition("::")[0] in self.sources} - {mutant.key for mutant in mutants}
        lines = None if self.options.changed is None else changed_lines(self.options.changed)
        wanted = [
            mutant
            for mutant in mutants
            if mutant.key not in reasons and (lines is None or lines[mutant.module] & set(mutant.lines))
        ]
        self.records = {mutant: record for mutant in wanted if (record := state.known(mutant)) is not None}
        waiting = [mutant for mutant in wanted if mutant not in self.records]
        print(f"{len(wanted)} mutants; {len(self.records)} of them are known from an earlier run", flush=True)
        self._run(waiting, state, choice, temporary)
        self.report = partial(report, wanted, self.records, stale)

    def _run(self, waiting: list[Mutant], state: State, choice: Choice, temporary: Path) -> None:
        functions = Functions(self.sources)
        gc.collect()
        gc.freeze()
        mutants: dict[int, Mutant] = {}
        progress = Progress(self.options.seconds, len(waiting))
        at_import = fresh.lines_at_import(self.code)

        def jobs() -> Iterator[Job]:
            for mutant in waiting:
                if progress.is_over:
                    return
                tests = choice.tests_of(mutant)
                if tests and at_import[mutant.module].isdisjoint(mutant.lines):
                    job = Job(tests, choice.limits(tests), partial(functions.mutate, mutant), run_test)
                else:
                    job = _fresh_job(mutant, choice.tests_of_module(mutant))
                mutants[id(job)] = mutant
                yield job

        for job, ending in run_jobs(jobs(), self.options.workers, temporary):
            mutant = mutants.pop(id(job))
            choice.learn(mutant, ending)
            self.records[mutant] = record = state.keep(mutant, ending)
            progress.show(record)


def _fresh_job(mutant: Mutant, tests: list[pytest.Item]) -> Job:
    """Return the job that imports a mutant in a fresh process; its only step stands for all tests."""
    names = [item.nodeid for item in tests]
    return Job(tests[:1], [_FRESH], lambda: None, lambda item, following: fresh.passes(mutant, names))


class Progress:
    """How far the run is, and whether its time is over."""

    def __init__(self, seconds: float, total: int) -> None:
        self._end, self._total = monotonic() + seconds, total
        self._counts: Counter[str] = Counter()
        self._shown = _BEGAN

    @property
    def is_over(self) -> bool:
        """Whether no further mutant may begin."""
        return monotonic() > self._end

    def show(self, record: Record) -> None:
        """Count an outcome, and print a line every 20 seconds."""
        self._counts[record.result] += 1
        now = monotonic()
        if now - self._shown > 20:
            self._shown = now
            counts = ", ".join(f"{count} {result}" for result, count in self._counts.items())
            print(f"{now - _BEGAN:5.0f} s: {counts}, of {self._total}", flush=True)


# ---- the command -----------------------------------------------------------------------------------------------------


def report(mutants: list[Mutant], records: dict[Mutant, Record], stale: Iterable[str]) -> int:
    """Print each mutant that no test caught, and the counts; return the exit code."""
    counts = Counter(record.result for record in records.values())
    for mutant in mutants:
        if mutant in records and records[mutant].result == "missed":
            print(mutant)
    for key in sorted(stale):
        print(f"no statement has this key any more, so its reason has to go: {key}")
    print(f"{counts['caught']} caught, {counts['hung']} hung, {counts['missed']} missed", end="")
    print(
        f"; {left} were not tried, because the time was over" if (left := len(mutants) - len(records)) else "", end=""
    )
    minutes, seconds = divmod(round(monotonic() - _BEGAN), 60)
    print(f"; {minutes}:{seconds:02} min in all")
    return int(bool(counts["missed"] or stale))


def changed_lines(base: str) -> dict[str, set[int]]:
    """Return the lines of each file that differ from a commit."""
    command = [
        "git",
        "diff",
        "--unified=0",
        "--no-color",
        "--no-ext-diff",
        "--no-prefix",
        "--relative",
        base,
        "--",
        "*.py",
    ]
    diff = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, set[int]] = defaultdict(set)
    path = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").rstrip("\t")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            found[path].update(range(first, first + count))
    return found


def _python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [Path(str(path).partition("::")[0])]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m checks.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("code", nargs="*", default=CODE, help="files and folders to mutate")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files and folders of the tests")
    parser.add_argument("--changed", metavar="COMMIT", help="only lines that differ from a commit")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no mutant so long after the first one"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2, help="how many run at once")
    parser.add_argument("--state", type=Path, default=Path(".bench/mutants.jsonl"), help="the file of results")
    parser.add_argument("--reasons", type=Path, default=Path("checks/mutants.toml"), help="mutants with a reason")
    options = parser.parse_args(namespace=Options())
    hunt = Hunt(options)
    # Captured output would go to a file that all forks share.
    code = pytest.main(["-qq", "--capture=no", "-p", "no:cacheprovider", *options.tests], plugins=[hunt])
    return int(code) or 2 if hunt.report is None else hunt.report()


if __name__ == "__main__":
    sys.exit(main())
