"""What it costs to record an op, and what a tape holds: `python -m benchmarks.recording`.

The time of a call on tensors that require gradients, with and without `no_grad`, beside NumPy's own call on the same
arrays. Then tapes of more and more ops: time per op to record them and to go back, and bytes per op.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from random import Random
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np

import dynamic
from benchmarks.workers import CLOCKS
from compare.instruments.rounds import Clock, calibrate, orders, time_block, without_collection
from compare.run.environment import pin
from compare.text import show_table

Call = Callable[[], Any]
LENGTHS = (1_000, 10_000, 100_000)


def _floats(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


ONE, MANY, LEFT, RIGHT = _floats(1), _floats(64), _floats(8, 32), _floats(32, 32)
OPS: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "x + y, 1 float": (lambda x, y: x + y, (ONE, ONE)),
    "x + y, 64 floats": (lambda x, y: x + y, (MANY, MANY)),
    "x * 0.5, 64 floats": (lambda x: x * 0.5, (MANY,)),
    "tanh(x), 64 floats": (dynamic.tanh, (MANY,)),
    "x @ y, 8×32 by 32×32": (lambda x, y: x @ y, (LEFT, RIGHT)),
}
MODES = ("NumPy", "no_grad", "recorded")


def calls(op: str) -> dict[str, Call]:
    """The call of an op on arrays, on tensors within `no_grad`, and recorded."""
    f, arrays = OPS[op]
    tensors = [dynamic.from_numpy(x).requires_grad_() for x in arrays]
    numpy = np.tanh if f is dynamic.tanh else f
    return {"NumPy": partial(numpy, *arrays), "no_grad": partial(f, *tensors), "recorded": partial(f, *tensors)}


def cost(op: str, rounds: int, clock: Clock = time.perf_counter_ns, block: float = 0.001) -> dict[str, list[float]]:
    """Seconds per call of each block of each mode; block i belongs to round i."""
    by_mode, counts = calls(op), {}
    for mode, call in by_mode.items():
        with dynamic.set_grad_enabled(mode == "recorded"):
            call()  # what an engine prepares when it first meets an op is no part of a call
            counts[mode] = calibrate(call, block, clock)[-1][0]
    blocks: dict[str, list[float]] = {mode: [] for mode in MODES}
    for order in islice(orders(MODES, Random(0)), rounds):
        for mode in order:
            with dynamic.set_grad_enabled(mode == "recorded"), without_collection():
                blocks[mode].append(time_block(by_mode[mode], counts[mode], clock))
    return blocks


class Tape(NamedTuple):
    """What a tape of `length` ops costs per op: seconds to record it and to go back, bytes with and without results.

    `structure` is the tape's own count of its entries; `allocated` is all that Python and NumPy hold for it.
    """

    length: int
    record: float
    back: float
    structure: float
    allocated: float


def tape(length: int, repeats: int = 3) -> Tape:
    """Measure a chain of additions of one float; times are the best of the repeats."""
    record, back = zip(*(_times(length) for _ in range(repeats)), strict=True)
    structure, allocated = _bytes(length)
    return Tape(length, min(record) / length, min(back) / length, structure / length, allocated / length)


def _times(length: int) -> tuple[float, float]:
    x = dynamic.tensor(1.0, requires_grad=True)
    with without_collection():
        start = time.perf_counter()
        y = chain(x, length)
        middle = time.perf_counter()
        y.backward()
        return middle - start, time.perf_counter() - middle


def chain(x: Any, length: int) -> Any:
    """`x + x + ... + x`: `length` ops, each on the result of the one before."""
    y = x
    for _ in range(length):
        y = y + x
    return y


def _bytes(length: int) -> tuple[int, int]:
    x = dynamic.tensor(1.0, requires_grad=True)
    gc.collect()
    tracemalloc.start()
    y = chain(x, length)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    structure = dynamic.tape_stats(y).structure_bytes
    y.backward()  # frees the tape node by node
    return structure, allocated


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(2), default=60, show_default=True, help="Blocks per mode.")
@click.option("--clock", type=click.Choice(list(CLOCKS)), default="wall", show_default=True, help="As in the table.")
def main(rounds: int, clock: str) -> None:
    """Measure the cost of recording, and of tapes, and print two tables."""
    pin()
    rows = []
    for op in OPS:
        blocks = cost(op, rounds, CLOCKS[clock])
        ratios = {mode: median(np.divide(blocks[mode], blocks["NumPy"])) for mode in MODES[1:]}
        times = [f"{median(blocks[mode]) * 1e6:.3g}" for mode in MODES]
        rows.append([op, *times, *(f"{ratio:.3g}" for ratio in ratios.values())])
    show_table(["µs a call", *MODES, "no_grad / NumPy", "recorded / NumPy"], rows)
    show_table(
        ["ops on the tape", "µs to record, per op", "µs to go back, per op", "bytes of structure", "bytes in all"],
        [
            [
                f"{t.length:,}",
                f"{t.record * 1e6:.3g}",
                f"{t.back * 1e6:.3g}",
                f"{t.structure:.0f}",
                f"{t.allocated:.0f}",
            ]
            for t in map(tape, LENGTHS)
        ],
    )


if __name__ == "__main__":
    main()
