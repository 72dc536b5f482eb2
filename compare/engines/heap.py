"""Counting of malloc's bytes, alike for every framework, by a preloaded C library that is built where a compiler is.

The frameworks' own counters do not count the same things: PyTorch's profiler sees tensors, XLA its buffers, and
TensorFlow has none for the CPU. Nearly all memory that they allocate on the CPU comes from malloc.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

SOURCE = Path(__file__).with_name("heap.c")


def library(folder: Path) -> Path | None:
    """Return the path of the library, built in a folder if it is missing; None without glibc or a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    built = folder / "heap.so"
    if not built.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = built.with_suffix(".partial")
        done = subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(partial)], check=False, capture_output=True
        )
        if done.returncode != 0:
            return None
        partial.replace(built)
    return built


def environment(folder: Path) -> dict[str, str]:
    """Return the environment variable that makes a process count; empty where no library can be built."""
    built = library(folder)
    return {"LD_PRELOAD": " ".join(filter(None, (str(built), os.environ.get("LD_PRELOAD"))))} if built else {}


def live() -> int:
    """Return the bytes in use after a garbage collection; 0 where this process does not count."""
    gc.collect()
    counter = _counter()
    return int(counter.graphduel_heap_live()) if counter else 0


def peak(call: Callable[[], object]) -> int | None:
    """Return how many bytes the use of memory rises in a call; None where this process does not count.

    The rise is measured from the lowest use before it: a training step that starts by dropping the gradients of the
    last step still needs room for its own.
    """
    gc.collect()
    counter = _counter()
    if counter:
        counter.graphduel_heap_restart()
    call()
    return int(counter.graphduel_heap_rise()) if counter else None


class ByteCounter(NamedTuple):
    """A counter of bytes: its name, the bytes in use now, and the rise in bytes during a call (None: not counted)."""

    name: Literal["malloc", "allocator"]
    live: Callable[[], int]
    peak: Callable[[Callable[[], object]], int | None]


MALLOC = ByteCounter("malloc", live, peak)


@cache
def _counter() -> ctypes.CDLL | None:
    loaded = ctypes.CDLL(None)
    if not hasattr(loaded, "graphduel_heap_live"):
        return None
    for name in ("live", "rise"):
        getattr(loaded, f"graphduel_heap_{name}").restype = ctypes.c_long
    return loaded
