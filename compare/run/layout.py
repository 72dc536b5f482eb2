"""Where memory happens to lie, drawn anew for each worker, so that intervals cover it.

How many bytes the environment takes moves the stack, and what lies at the start of the heap moves every array and arena
after it: either can make the same code some percent slower or faster, in every run of a program that starts alike
(Mytkowicz et al., Producing wrong data without doing anything obviously wrong, ASPLOS 2009). Curtsinger and Berger
(Stabilizer, ASPLOS 2013) therefore draw the layout at random, again and again. Here each worker has one of its own, by
the seed of its job: an environment of another size, two blocks of heap that it keeps, one taken before anything is
imported and one after, and an offset of the static engine's arenas within a page, but where bytes are counted. Large
arrays have pages of their own and begin where these do, as in any program; and code stays where the loader puts it.
"""

from __future__ import annotations

from random import Random

import numpy as np

from compare.records.job import Job, seeded
from compare.records.kinds import KINDS
from compare.run.start import LAYOUT
from static import memory

PAGE = 4096
"""Bytes by which the environment may grow, and arenas may move: after a page all is where it was."""
MOST_HEAP = 1 << 16
"""Bytes of each block: less than what malloc takes from the system by itself."""
_kept: list[object] = []


def variable(job: Job) -> dict[str, str]:
    """The variable that a worker for this job starts with: the bytes of the first block, and a filler."""
    random = _drawn(job)
    return {LAYOUT: f"{random.randrange(MOST_HEAP)}:" + "x" * random.randrange(PAGE)}


def moved(job: Job) -> None:
    """From now on keep a block and begin arenas at an offset, both drawn for the job; those before it are let go."""
    random = _drawn(job, "after")
    _kept[:] = [np.empty(random.randrange(MOST_HEAP), np.uint8)]
    offset = random.randrange(0, PAGE, memory.ALIGNMENT)
    memory.begin_at(0 if job.kind in KINDS and KINDS[job.kind].counts else offset)


def _drawn(job: Job, when: str = "before") -> Random:
    return seeded(f"{job.seed}/{job.label}/{when}")
