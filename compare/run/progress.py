"""Progress on stderr: a live bar with an estimate of the time left on a terminal, plain lines elsewhere.

The estimate combines the seconds of jobs of each kind in this run with typical ones: those of earlier runs of the same
name on this machine, where there were any, which the user's cache keeps.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from compare.records.job import ELSEWHERE, FIRST, KINDS, Job
from compare.records.record import Record
from compare.run.environment import cache_folder
from compare.steps import Told
from graphs.errors import plain
from graphs.files import write_file

if TYPE_CHECKING:
    from rich.console import Console

Group = tuple[str, str]
"""A kind of job and a size, or ELSEWHERE or FIRST for another engine; both are empty for an unknown job."""

OTHER = {"": 2.0}
"""The typical seconds of an unknown job."""
GOES_ON = {
    "began": "starting",
    "called": "calling",
    "captured": "capturing",
    "checked": "checking",
    "compared": "comparing",
    "compiled": "compiling",
    "counted": "counting",
    "examined": "examining",
    "imported": "importing",
    "made": "making",
    "measured": "measuring",
    "ran": "running",
    "started": "starting",
    "timed": "timing",
    "trained": "training",
    "waited": "waiting",
}
"""The verbs of steps in the form in which they are shown."""
TRUST = 6
"""The number of jobs of a kind in this run that weighs as much as the typical seconds from elsewhere."""
LEARNED, MOST_NAMES = "pace.json", 200
"""The file of the seconds of earlier runs in the user's cache, and the number of names that it keeps, the latest."""


class Pace:
    """The finished jobs of a run, those to come, and the seconds of both.

    `total` may be set to a number of unknown jobs; `expect` tells more of them. If jobs of a group are `alike`, as
    those of one function are, the first that has run predicts all.
    """

    def __init__(self) -> None:
        self.total = self.done = 0
        self.alike = False
        self._ahead: Counter[Group] = Counter()
        self._ran: Counter[Group] = Counter()
        self._took: defaultdict[Group, float] = defaultdict(float)
        self._started = 0.0
        self._typical: dict[Group, float] = {}

    @contextmanager
    def learning(self, name: str) -> Iterator[None]:
        """A context of a run by this name: it expects the seconds of earlier ones, and leaves its own."""
        self._typical = _seconds_of(name)
        try:
            yield
        finally:
            ran = {group: self._took[group] / number for group, number in self._ran.items() if number}
            rows = {**self._typical, **{group: _between(self._typical.get(group), mean) for group, mean in ran.items()}}
            if ran:
                _keep(name, [[*group, seconds] for group, seconds in rows.items()])

    def expect(self, jobs: Iterable[Job]) -> None:
        """Expect these jobs too."""
        expected = Counter(map(_group, jobs))
        self._ahead += expected
        self.total += expected.total()

    def start(self) -> None:
        """Note that a job begins now."""
        self._started = time.monotonic()

    def finish(self, job: Job | None = None) -> float:
        """Note that a job has ended; return its seconds, or those since the last start where several run at once."""
        now = time.monotonic()
        seconds, self._started = now - self._started, now
        self.took(seconds, job)
        return seconds

    def took(self, seconds: float, job: Job | None = None) -> None:
        """Note that a job has taken these seconds of the run."""
        self.skip(job)
        self._ran[_group(job)] += 1
        self._took[_group(job)] += seconds

    def skip(self, job: Job | None = None) -> None:
        """Note that a job is done without having run."""
        self.done += 1
        self._ahead -= Counter([_group(job)])

    @property
    def seconds_left(self) -> float | None:
        """Return an estimate of the seconds left; None before any job was timed."""
        if not (self._ran or self._typical):
            return None
        rest, expected = max(0, self.total - self.done), self._ahead.total()
        seconds = sum(number * self._mean(group) for group, number in self._ahead.items())
        if expected > rest:  # some unknown jobs were skipped
            return seconds * rest / expected
        return seconds + (rest - expected) * self._mean(_group(None))

    @property
    def slowness(self) -> float:
        """Return the ratio of jobs' seconds here to typical ones; at least 1, and 1 before any job has run."""
        return max(1.0, self._speed) if self._ran else 1.0

    @property
    def left(self) -> str:
        """Return `about 80 s left`; empty before any job was timed."""
        return "" if (seconds := self.seconds_left) is None else f"about {_round_seconds(seconds)} left"

    def _mean(self, group: Group) -> float:
        """Return the seconds of a job of a group: typical ones at this machine's speed, until enough have run."""
        trust = 0 if self.alike and self._ran[group] else TRUST
        return (trust * self._usual(group) * self._speed + self._took[group]) / (trust + self._ran[group])

    def _usual(self, group: Group) -> float:
        return self._typical.get(group) or _typical(group)

    @property
    def _speed(self) -> float:
        usual = sum(number * self._usual(group) for group, number in self._ran.items())
        return sum(self._took.values()) / usual if usual else 1.0


def _group(job: Job | None) -> Group:
    if job is None:
        return "", ""
    return job.kind, (ELSEWHERE if job.process else FIRST) if job.mode else str(job.size)


def _typical(group: Group) -> float:
    kind, size = group
    seconds = KINDS[kind].typical if kind else OTHER
    return seconds.get(size, seconds[""])


def _earlier_runs() -> Mapping[str, Any]:
    """Return what earlier runs have left, by name: kind, size and seconds of jobs; {} where nothing can be read."""
    with suppress(OSError, ValueError):
        learned = json.loads(Path(cache_folder(), LEARNED).read_text("utf-8"))
        if isinstance(learned, dict):
            return learned
    return {}


def _seconds_of(name: str) -> dict[Group, float]:
    with suppress(TypeError, ValueError):
        return {(str(kind), str(size)): float(seconds) for kind, size, seconds in _earlier_runs().get(name, ())}
    return {}


def _keep(name: str, rows: list[list[Any]]) -> None:
    kept = {**{other: of for other, of in _earlier_runs().items() if other != name}, name: rows}
    with suppress(OSError):
        latest = dict([*kept.items()][-MOST_NAMES:])
        write_file(Path(cache_folder(), LEARNED), json.dumps(latest).encode())


def _between(before: float | None, now: float) -> float:
    return now if before is None else (before + now) / 2


def _round_seconds(seconds: float) -> str:
    """Return `80 s` or `6 min`, as precise as an estimate can be."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _elapsed_time(seconds: float) -> str:
    """Return `80 s`, `2 min 10 s` or `12 min`: below ten minutes two lines of one job differ."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if 100 <= seconds < 600 else _round_seconds(seconds)


def in_progress(step: str) -> str:
    """Return a step, told in the past tense when it begins, as it is shown: `making call 1 in compile`."""
    verb, *rest = plain(step).split(" ", 1)
    return " ".join([GOES_ON.get(verb, verb), *rest])


class Reporter:
    """A reporter that hears of each job and says nothing. Tell `pace` the jobs, or their number, before the first."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.label = ""
        self._causes: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, label: str) -> None:
        """Note that a job begins."""
        self.label = label
        self.pace.start()
        self.refresh()

    def finish(self, error: str | None = None, job: Job | None = None) -> None:
        """Note that a job has ended, with or without an error."""
        self.ended(self.pace.finish(job), error)
        self.refresh()

    def skip(self, job: Job | None = None) -> None:
        """Note that a job need not run."""
        self.pace.skip(job)
        self.refresh()

    def hear(self, told: Told | Record) -> None:
        """Note a message of the job's worker, or its answer."""
        if isinstance(told, str):
            self.step(told)

    def step(self, what: str) -> None:
        """Show the worker's present step."""

    def cause(self, ended: str | None) -> None:
        """Say why workers had to be ended after they had answered, each reason once."""
        if ended and ended not in self._causes:
            self._causes.add(ended)
            self.notice(ended)

    def refresh(self) -> None:
        """Show how far the run is."""

    def ended(self, seconds: float, error: str | None) -> None:
        """Say how the job ended."""

    def notice(self, text: str) -> None:
        """Say something worth a line."""


class LineReporter(Reporter):
    """A reporter for logs: one plain line per job that ran, and one each `every` seconds while a job goes on.

    A compiler may work for minutes; its step and its seconds so far show that it is alive.
    """

    def __init__(self, stream: IO[str], every: float = 10.0) -> None:
        super().__init__()
        self.stream = stream
        self._every, self._step, self._began = every, "", 0.0
        self._ends = threading.Event()

    def __enter__(self) -> Self:
        self._ends.clear()
        self._beat = threading.Thread(target=self._go_on, name="graphduel-progress", daemon=True)
        self._beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._beat.join()

    def start(self, label: str) -> None:
        """Note that a job begins."""
        super().start(label)
        self._step, self._began = "", time.monotonic()

    def step(self, what: str) -> None:
        """Note the worker's present step."""
        self._step = in_progress(what)

    def _go_on(self) -> None:
        """Write a line each `every` seconds while a job goes on, until the reporter ends."""
        while not self._ends.wait(self._every):
            seconds = time.monotonic() - self._began
            if self._began and seconds >= self._every:
                self.notice(f"    {self.label}{self._step and f', {self._step}'}: {_elapsed_time(seconds)} so far")

    def ended(self, seconds: float, error: str | None) -> None:
        """Write `[ 3/42] time rnn_text/small, process 1: 2.1 s, about 80 s left`."""
        self._began = 0.0
        ending = f"FAILED, {error}" if error else f"{seconds:.1f} s"
        place = f"{self.pace.done:{len(str(self.pace.total))}}/{self.pace.total}"
        self.notice(f"[{place}] {self.label}: {ending}, {self.pace.left}")

    def notice(self, text: str) -> None:
        """Write the text on a line of its own."""
        self.stream.write(plain(text) + "\n")
        self.stream.flush()


class Bar(Reporter):
    """A live bar: how far the run is, how long it will take, and the step that is running."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console
        from rich import progress
        from rich.table import Column

        self.progress = progress.Progress(
            progress.SpinnerColumn(),
            progress.BarColumn(bar_width=12),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
            progress.TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", max_width=32)
            ),
            console=console,
            transient=True,
        )
        self.task = self.progress.add_task("", total=None, left="")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def refresh(self) -> None:
        """Move the bar."""
        pace = self.pace
        self.progress.update(
            self.task, completed=pace.done, total=pace.total, description=plain(self.label), left=pace.left
        )

    def step(self, what: str) -> None:
        """Show the step beside the bar in its present form: `making call 1 in compile`."""
        self.progress.update(self.task, description=in_progress(what))

    def ended(self, seconds: float, error: str | None) -> None:
        """Leave a line above the bar for a failure."""
        if error:
            self.notice(f"{self.label} failed after {seconds:.1f} s: {error}")

    def notice(self, text: str) -> None:
        """Show the text above the bar."""
        self.console.print(plain(text), markup=False, highlight=False)


def reporter() -> Reporter:
    """Return the reporter that suits stderr: a bar on a terminal, lines elsewhere. NO_COLOR is respected."""
    from rich.console import Console

    console = Console(stderr=True)
    return Bar(console) if console.is_terminal and not console.is_dumb_terminal else LineReporter(console.file)
