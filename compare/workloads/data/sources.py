"""The Python sources that text and trees are drawn from: the interpreter's own standard library.

The UCI handwritten digits, 1797 images of 8 x 8 pixels, split once and for all.

Lines of source text as sequences of character ids: a small vocabulary and naturally varying lengths.
"""

import hashlib
import platform
import random
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

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


Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

TEST_SIZE = 360
_FILE = Path(__file__).with_name("digits.npz")
_BRIGHTEST = 16
_SPLIT_SEED = 1998


def load_digits() -> tuple[Images, Labels, Images, Labels]:
    """The digits as `(x_train, y_train, x_test, y_test)`, in the same split and order every time.

    Images are float32[N, 64] in [0, 1], row by row; labels are int64[N] in 0..9. N is 1437 for training and
    360 for testing. Source and licence: LICENSE-digits.md beside this file.
    """
    with np.load(_FILE, allow_pickle=False) as stored:
        pixels, labels = stored["pixels"], stored["labels"]
    order = _split_order(len(labels))
    images = pixels[order].astype(np.float32) / np.float32(_BRIGHTEST)
    classes = labels[order].astype(np.int64)
    return images[:-TEST_SIZE], classes[:-TEST_SIZE], images[-TEST_SIZE:], classes[-TEST_SIZE:]


def minibatches(rng: np.random.Generator, batch: int, batches: int) -> tuple[tuple[Images, Labels], ...]:
    """Disjoint minibatches of the training digits. Raises ValueError when these do not suffice."""
    x, y, _, _ = load_digits()
    if batch * batches > len(x):
        raise ValueError(f"{batches} batches of {batch} need {batch * batches} digits, there are {len(x)}")
    order = rng.permutation(len(x))[: batch * batches].reshape(batches, batch)
    return tuple((x[rows], y[rows]) for rows in order)


def _split_order(count: int) -> npt.NDArray[np.intp]:
    # NumPy keeps the raw stream of a bit generator for ever; that of Generator.permutation may change.
    return np.argsort(np.random.PCG64(_SPLIT_SEED).random_raw(count), kind="stable")


Ids = npt.NDArray[np.int64]

_FIRST = ord(" ")
UNKNOWN = ord("~") - _FIRST + 1
VOCABULARY_SIZE = UNKNOWN + 1
_SHORTEST = 2


def source_lines(count: int, seed: int = 0, max_length: int = 80) -> tuple[Ids, ...]:
    """`count` lines of standard library source, each int64[T] with 2 <= T <= max_length, indentation kept.

    Ids are 0..94 for printable ASCII, from the space on, and 95 (`UNKNOWN`) for any other character. Longer
    lines are left out rather than cut, so that lengths follow real lines. Equal arguments give equal lines
    under an equal `fingerprint()`. Raises ValueError when there are not `count` lines that fit.
    """

    def lines(source: bytes) -> Iterator[str]:
        for line in map(str.rstrip, source.decode("utf-8", "replace").splitlines()):
            if _SHORTEST <= len(line) <= max_length:
                yield line

    return tuple(map(encode, sample(lines, count, seed)))


def encode(line: str) -> Ids:
    """The ids of the characters of a line, int64[T]."""
    codes = np.frombuffer(line.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64) - _FIRST
    return np.where((codes >= 0) & (codes < UNKNOWN), codes, UNKNOWN)


def decode(ids: Ids) -> str:
    """The line that ids stand for; unknown characters come back as U+FFFD."""
    return "".join("\ufffd" if i == UNKNOWN else chr(i + _FIRST) for i in ids.tolist())
