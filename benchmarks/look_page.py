"""The page of `agent-hooks look` in a real browser: a million calls on screen, movements in them, and the saved file."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import Effort, Row
from benchmarks.peer_runs import Peers

CALLS = 1_000_000
PAINTED, FRAME, SAVED = 1.5, 33.0, 20.0
_TESTS = Path(__file__).parent.parent / "tests"

# Waits for the first painting of the ribbon and for the commands of the list, from the beginning of the document on.
_FIRST = """() => new Promise(done => {
  const look = () => {
    const canvas = document.querySelector("look-ribbon canvas");
    const command = document.querySelector(".row .command");
    const isThere = canvas && canvas.width > 300 && command && command.textContent !== "…";
    if (isThere) done(performance.now()); else requestAnimationFrame(look);
  };
  look();
})"""
# Moves once a frame, and returns the milliseconds between frames.
_MOVE = """([what, frames]) => new Promise(done => {
  const ribbon = document.querySelector("look-ribbon");
  const box = document.querySelector("look-list .box");
  if (what === "pan") ribbon.zoom(0.5);
  const times = [];
  let before = 0;
  const step = now => {
    if (before) times.push(now - before);
    before = now;
    if (times.length >= frames) return done(times);
    if (what === "pan") ribbon.pan(times.length % 40 < 20 ? 0.02 : -0.02);
    else box.dispatchEvent(new WheelEvent("wheel", {deltaY: 240, cancelable: true, bubbles: true}));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Measure the page over made-up calls; without a browser each row says so."""
    sys.path.insert(0, str(_TESTS))
    from look.browser import NO_BROWSER
    from look.made_up import MadeUpView

    view = MadeUpView(20_000 if effort.quick else CALLS)
    calls = f"{len(view):,} calls"
    rows = [_saved(view, calls)]
    if NO_BROWSER:
        return [*rows, Row(f"look: {calls} painted", None, "s", problem=NO_BROWSER)]
    with _opened(view) as page:
        clock = _Clock(page)
        painted = [page.evaluate(_FIRST) / 1000]
        own = []
        for _ in range(1 if effort.quick else 3):
            page.reload()
            painted.append(page.evaluate(_FIRST) / 1000)
            own.append(clock.lap())
        note = f"chromium without a GPU, from the beginning of the document; own time {median(own):.2f} s"
        rows.append(Row(f"look: {calls} painted", median(painted), "s", must=PAINTED, note=note))
        frames = 30 if effort.quick else 200
        for what in ("pan", "scroll"):
            clock.lap()
            times = sorted(page.evaluate(_MOVE, [what, frames]))
            note = f"over {calls}; own time {clock.lap() * 1000 / frames:.1f} ms a frame"
            rows.append(
                Row(f"look: p95 of a frame, {what}", times[int(len(times) * 0.95)], "ms", must=FRAME, note=note)
            )
    return rows


class _Clock:
    """The time that the processor has spent on the page, which other programs of a busy machine do not lengthen."""

    def __init__(self, page: Any) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")
        self._before = 0.0
        self.lap()

    def lap(self) -> float:
        """Return the seconds of the page's process since the last lap."""
        metrics = {each["name"]: each["value"] for each in self._session.send("Performance.getMetrics")["metrics"]}
        before, self._before = self._before, float(metrics["ProcessTime"])
        return self._before - before


def _saved(view: Any, calls: str) -> Row:
    from agent_hooks.look.saved import compose

    saved = compose(view)
    note = f"cards of the newest {saved.cards:,}"
    return Row(f"look: saved file, {calls}", len(saved.content) / 1e6, "MB", must=SAVED, note=note)


@contextmanager
def _opened(view: Any) -> Iterator[Any]:
    from look.browser import chromium, visiting
    from look.serving import served

    with (
        tempfile.TemporaryDirectory() as directory,
        served(view, Path(directory)) as server,
        chromium() as browser,
        visiting(browser) as visit,
    ):
        visit.page.goto(server.path.as_uri())
        visit.page.wait_for_url(f"{server.address}/")
        yield visit.page
