"""Lines of source text as sequences of character ids: a small vocabulary and naturally varying lengths."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from compare.workloads.data.sources import sample

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
