"""How far a run is, and the seconds it will still take: by what jobs of each kind took here, and typically take."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable

from compare.records.job import Job
from compare.records.kinds import ELSEWHERE, KINDS

Group = tuple[str, str]
"""A kind and a size, or ELSEWHERE of another engine than ours; both empty where nothing is known of a job."""

OTHER = {"": 2.0}
"""What is typical of jobs of which nothing is known."""
TRUST = 6
"""So many jobs of a kind must have run here until they weigh as much as what was typical elsewhere."""


class Pace:
    """The jobs of a run that are done, those to come, and the seconds of both.

    `total` may be set to a number of jobs of which nothing is known; `expect` says more of them.
    """

    def __init__(self) -> None:
        self.total = self.done = 0
        self._ahead: Counter[Group] = Counter()
        self._ran: Counter[Group] = Counter()
        self._took: defaultdict[Group, float] = defaultdict(float)
        self._started = 0.0

    def expect(self, jobs: Iterable[Job]) -> None:
        """These jobs are to come, too."""
        expected = Counter(map(_group, jobs))
        self._ahead += expected
        self.total += expected.total()

    def start(self) -> None:
        """A job begins now."""
        self._started = time.monotonic()

    def finish(self, job: Job | None = None) -> float:
        """The job has ended. Returns its seconds, or those since the last start of one where several run at once."""
        now = time.monotonic()
        seconds, self._started = now - self._started, now
        self.took(seconds, job)
        return seconds

    def took(self, seconds: float, job: Job | None = None) -> None:
        """A job has taken these seconds of the run."""
        self.skip(job)
        self._ran[_group(job)] += 1
        self._took[_group(job)] += seconds

    def skip(self, job: Job | None = None) -> None:
        """A job is done without having run."""
        self.done += 1
        self._ahead -= Counter([_group(job)])

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None before anything was timed."""
        if not self._ran:
            return None
        rest, expected = max(0, self.total - self.done), self._ahead.total()
        seconds = sum(number * self._mean(group) for group, number in self._ahead.items())
        if expected > rest:  # some were skipped, and nobody said which
            return seconds * rest / expected
        return seconds + (rest - expected) * self._mean(_group(None))

    @property
    def slowness(self) -> float:
        """How many times as long as is typical jobs take here; 1 where they take less, and before any has run."""
        return max(1.0, self._speed) if self._ran else 1.0

    @property
    def left(self) -> str:
        """`about 80 s left`; empty before anything was timed."""
        return "" if (seconds := self.seconds_left) is None else f"about {_rounded(seconds)} left"

    def _mean(self, group: Group) -> float:
        """The seconds of a job of this kind: what was typical, at the speed of this machine, until enough have run."""
        return (TRUST * _typical(group) * self._speed + self._took[group]) / (TRUST + self._ran[group])

    @property
    def _speed(self) -> float:
        return sum(self._took.values()) / sum(number * _typical(group) for group, number in self._ran.items())


def _group(job: Job | None) -> Group:
    return ("", "") if job is None else (job.kind, ELSEWHERE if job.arm else str(job.size))


def _typical(group: Group) -> float:
    kind, size = group
    seconds = KINDS[kind].typical if kind else OTHER
    return seconds.get(size, seconds[""])


def _rounded(seconds: float) -> str:
    """`80 s`, `6 min`: as precisely as an estimate can be."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
