"""The clock of steady state: the seconds in which this process had a core, and not those in which others had it.

Beside other work a wall clock measures the neighbours. On two cores under a load of 6, blocks of one step in both
engines gave ratios whose logarithms vary by 1.3 to 1.6 on the wall, and by 0.2 to 0.3 by this clock. First calls are
read on the wall: compilers may be other processes, and a user waits for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

Clock = Callable[[], int]
ClockName = Literal["cpu", "wall"]
FINE = 1e-6
"""The coarsest resolution, in seconds, that blocks of a few milliseconds can be read by."""

IS_FINE = time.get_clock_info("process_time").resolution <= FINE
CLOCK: Clock = time.process_time_ns if IS_FINE else time.perf_counter_ns
NAME: ClockName = "cpu" if IS_FINE else "wall"
"""What records call it; Windows counts processor time in steps of 16 ms, so that the wall has to do there."""
