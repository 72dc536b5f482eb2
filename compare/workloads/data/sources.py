"""The Python sources that text and trees are drawn from: the interpreter's own standard library."""

import hashlib
import platform
import random
import sysconfig
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# One file has one author's style; a sample comes from at least this many.
_FEWEST_FILES = 4
_POOL_PER_ITEM = 2


@cache
def source_files() -> tuple[Path, ...]:
    """The public top-level modules of the standard library, sorted by name.

    Names that start with an underscore are left out: some of them are generated when Python is built.
    Raises FileNotFoundError where the standard library is not there as source files.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not files:
        raise FileNotFoundError(f"no standard library sources in {folder}; use a Python that ships its .py files")
    return tuple(files)


@cache
def fingerprint() -> str:
    """What text and trees depend on: `CPython-3.11.7-1a2b3c4d5e6f`, with a hash of the sources at its end."""
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{platform.python_implementation()}-{platform.python_version()}-{digest.hexdigest()[:12]}"


def sample(extract: Callable[[bytes], Iterable[T]], count: int, seed: int) -> tuple[T, ...]:
    """`count` different items that `extract` finds in the sources, in an order that the seed decides.

    Files are read in random order, and only until there are items enough to choose from.
    Raises ValueError when `count` is negative or more than all the sources hold.
    """
    rng = random.Random(seed)
    files = list(source_files())
    rng.shuffle(files)
    pool: list[T] = []
    for number, path in enumerate(files):
        if number >= _FEWEST_FILES and len(pool) >= count * _POOL_PER_ITEM:
            break
        pool.extend(extract(path.read_bytes()))
    if not 0 <= count <= len(pool):
        raise ValueError(f"asked for {count} items, the standard library has {len(pool)} that fit; ask for fewer")
    return tuple(rng.sample(pool, count))
