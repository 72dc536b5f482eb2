"""The crossover map: time and memory of both engines for a training step of a chain of ops, over size and depth."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import graphs
from compare import engines
from compare.instruments import memory
from compare.instruments.parity import exact
from compare.instruments.rounding import tree_error
from compare.instruments.rounds import time_call, without_collection
from compare.instruments.standard import TOLERANCES
from compare.instruments.timing import steady_rounds
from compare.records.cells import Crossover, CrossoverMemory, GridMemory, GridRow, GridTimes
from compare.records.job import Budget, Job
from compare.workloads.base import Case

Array = Any
Make = Callable[[int, int], Case]

WIDTH = 16
"""The columns of a matrix product, constant so that its work is proportional to the size of the tensor."""

MODES = engines.ours()


class Grid(NamedTuple):
    """The grid of cells: numbers of floats in a tensor, and numbers of ops in a chain, all combined."""

    sizes: tuple[int, ...]
    depths: tuple[int, ...]


GRIDS: Mapping[str, Grid] = {
    "coarse": Grid((16, 2048, 262_144), (1, 8, 64)),
    "fine": Grid((16, 128, 1024, 8192, 65_536, 524_288), (1, 4, 16, 64, 256)),
}


def measure(job: Job) -> Crossover:
    """Return the time record of one process: every cell, in random order, each checked for equal results first."""
    rng = job.random()
    cells = list(_cells(job))
    gc.freeze()  # keeps loaded objects out of each collection below
    rows = [time_cell(*cell, job.budget, rng) for cell in rng.sample(cells, len(cells))]
    return Crossover(**job.head, cells=sorted(rows, key=lambda row: (row.ops, row.depth, row.elements)))


def measure_memory(job: Job) -> CrossoverMemory:
    """Return the memory record of every cell: the bytes that each engine holds and reaches."""
    return CrossoverMemory(**job.head, cells=[memory_cell(*cell) for cell in _cells(job)])


def _cells(job: Job) -> Iterator[tuple[str, int, int]]:
    grid = GRIDS[str(job.size)]
    return product(CHAINS, grid.depths, grid.sizes)


def time_cell(ops: str, depth: int, elements: int, budget: Budget, rng: Random) -> GridTimes:
    """Return build, first call and steady blocks in seconds of each engine in a cell; no times where results differ."""
    case = CHAINS[ops](elements, depth)
    steps, first, results = {}, {}, {}
    for mode in rng.sample(MODES, len(MODES)):
        with without_collection():
            steps[mode] = engines.step(mode, case)
            first[mode], results[mode] = time_call(steps[mode].bind(0))
    wanted = exact(case)
    error = max(tree_error(result, wanted) for result in results.values())
    if error > TOLERANCES["float32"]:
        return GridTimes(ops, depth, elements, "disagree", f"off by {error:.3g}", {})
    builds = {mode: step.compile_seconds for mode, step in steps.items()}
    settled = steady_rounds({mode: steps[mode] for mode in MODES}, budget, rng).settled()
    rows = {mode: GridRow(builds[mode], first[mode], *settled[mode]) for mode in MODES}
    return GridTimes(ops, depth, elements, "ok", None, rows)


def memory_cell(ops: str, depth: int, elements: int) -> GridMemory:
    """Return the bytes by class of each engine in a cell, as `compare.instruments.memory` defines them."""
    case = CHAINS[ops](elements, depth)
    rows = {mode: memory.measure_mode(mode, case) for mode in MODES}
    return GridMemory(ops, depth, elements, "ok", None, rows)


# Chains of equal ops, of any depth, over tensors of any size --------------------------------------------------


def elementwise(size: int, depth: int) -> Case:
    """Return a case of `depth` products of f[size] with numbers near 1; the gradient, in x, takes `depth` more."""

    def loss(params: dict[str, Array], gain: Array) -> Array:
        x = params["x"]
        for _ in range(depth):
            x = x * gain
        return graphs.mean(x)

    x, noise = np.random.default_rng(0).standard_normal((2, size), np.float32)
    return Case(loss, {"x": x}, ((np.exp(noise / (10 * depth)),),), (size,))


def matmul(size: int, depth: int) -> Case:
    """Return a case of `depth` products of f[size / 16, 16] with one rotation f[16, 16]; the gradient is in x."""

    def loss(params: dict[str, Array], rotation: Array) -> Array:
        x = params["x"]
        for _ in range(depth):
            x = x @ rotation
        return graphs.mean(x * x)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((max(1, size // WIDTH), WIDTH), np.float32)
    rotation = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0].astype(np.float32)
    return Case(loss, {"x": x}, ((rotation,),), (size,))


CHAINS: Mapping[str, Make] = MappingProxyType({"elementwise": elementwise, "matmul": matmul})
