"""Kills a run at twenty random moments, goes on each time, and says how many jobs each start finished.

A program of its own: it has one thread, so that it can fork runs that start in no time. A run tells each job that it
has finished through a pipe, once the record is on the disk; what was told must be in the file, and stay there.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from compare import report, workloads
from compare.plans.settings import Settings
from compare.records import results
from compare.run.progress import Reporter
from compare.suite import stages as run
from tests.helpers.fake_run import answered
from tests.helpers.records import typed

KILLS = 20
SETTINGS = Settings(processes=30, only="[ts]*")


class Telling(Reporter):
    """Writes a line to a pipe for each job that has ended."""

    def __init__(self, pipe):
        super().__init__()
        self.pipe = pipe

    def ended(self, seconds, error):
        os.write(self.pipe, self.label.encode() + b"\n")


def execute(job, timeout):
    if job.kind == "environment":
        return typed({"kind": "environment", "environment": {}})
    time.sleep(0.001)
    return answered(job)


def lines(path):
    """The complete lines of the file that hold the record of a job."""
    data = path.read_bytes() if path.exists() else b""
    return [line for line in data.split(b"\n")[:-1] if b'"kind":"run"' not in line]


def start(directory, jobs, seconds):
    """Go on with the run; kill it so many jobs and seconds later, or never if None. Returns the jobs that it told."""
    hear, tell = os.pipe()
    child = os.fork()
    if not child:
        run.run(directory, SETTINGS, Telling(tell), resume=True, execute=execute)
        os._exit(0)
    os.close(tell)
    with os.fdopen(hear) as told:
        first = [told.readline() for _ in range(jobs or 0)]
        if jobs is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [*first, *told.read().splitlines()]


def main():
    directory = Path(sys.argv[1])
    report.write = lambda *_: []
    workloads._sources = {"tiny": "tests.helpers.fake_workloads:TINY", "stray": "tests.helpers.fake_workloads:STREAM"}
    moments = random.Random(7)
    for jobs in [*(moments.randrange(4) for _ in range(KILLS)), None]:
        before = lines(directory / results.RESULTS)
        told = start(directory, jobs, moments.uniform(0, 0.01))
        after = lines(directory / results.RESULTS)
        assert after[: len(before)] == before, "a finished record is gone"
        assert len(after) - len(before) - len(told) in (0, 1), "a job was told of and is not in the file"
        print(len(told))


if __name__ == "__main__":
    main()
