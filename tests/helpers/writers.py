"""Every way in which the product writes a file that may be there already: what a new writer is added to.

`python -m tests.helpers.writers FOLDER` is killed at bytes of each of them, and prints what did not stand.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dynamic
import static
from compare.advice import prediction
from compare.cli.options import write_json
from compare.gate.rules import Gate
from compare.records import results
from graphs.drawing.drawing import MappedBuffer, MemoryMap
from graphs.files import write_file
from static.native import target as machines
from tests.helpers.fake_run import environment
from tests.helpers.prices import costs

Save = Callable[[Path, int], Any]


class Writer(NamedTuple):
    """The name of a file, and what writes it; a later version is another content, and longer."""

    file: str
    save: Save


def _graph(version: int) -> Any:
    return static.compile(lambda x: x + np.arange(100.0 * version), np.ones(100 * version))


def _cached(path: Path, version: int) -> None:
    os.environ[machines.CACHE_SWITCH] = str(path.parent)
    path.parent.chmod(0o700)
    machines.save_code(path.name, b"code" * 100 * version)


def _baseline(path: Path, version: int) -> None:
    results.replace(path, [environment("one" * 100 * version)])


def _map(version: int) -> MemoryMap:
    return MemoryMap("f", [MappedBuffer(f"b{i}", i, i + 1, 8, 0) for i in range(10 * version)], 8)


WRITERS = (
    Writer("state.pt", lambda path, n: dynamic.save({"w": dynamic.tensor(np.arange(100.0 * n)), "n": n}, path)),
    Writer("f.graph", lambda path, n: _graph(n).save(path)),
    Writer("f.svg", lambda path, n: _graph(n).draw().save(path)),
    Writer("f.html", lambda path, n: _graph(n).draw().save(path)),
    Writer("f.json", lambda path, n: _graph(n).draw().save(path)),
    Writer("f.png", lambda path, n: _graph(n).draw().save(path)),
    Writer("map.svg", lambda path, n: _map(n).save(path)),
    Writer("kernel", _cached),
    Writer("verdicts.json", lambda path, n: results.write_json(path, list(range(100 * n)))),
    Writer("answer.json", lambda path, n: write_json(path, {"values": list(range(100 * n))})),
    Writer("results.jsonl", _baseline),
    Writer("junit.xml", lambda path, n: Gate(junit=path).fail("f", "error " * 50 * n)),
    Writer("summary.md", lambda path, n: Gate(summary=path).fail("f", "error " * 50 * n)),
    Writer("costs.json", lambda path, n: prediction.save(costs(machine={"cpu": "one" * 100 * n}), path)),
    Writer("any", lambda path, n: write_file(path, b"0123456789" * 10 * n)),
)


@contextlib.contextmanager
def full_after(size: int) -> Iterator[None]:
    """A disk that takes so many bytes of each file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def attempts(folder: Path, writer: Writer, attempt: Callable[[Path, int], None]) -> list[str]:
    """What is wrong after attempts that end at bytes of the second version of a file: it must be the first as it was.

    `attempt` tries the second version on a disk that takes so many bytes.
    """
    path = folder / writer.file.replace(".", "_") / writer.file
    path.parent.mkdir()
    writer.save(path, 2)
    size = path.stat().st_size
    writer.save(path, 1)
    earlier, wrong = path.read_bytes(), []
    for at in (0, 1, size // 3, size - 1):
        attempt(path, at)
        if path.read_bytes() != earlier:
            wrong.append(f"{writer.file}: changed by a save that ended at byte {at} of {size}")
    return [*wrong, *(f"{other} is left" for other in path.parent.iterdir() if other != path)]


def _killed(writer: Writer, path: Path, size: int) -> None:
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        with full_after(size):
            writer.save(path, 2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    for other in path.parent.iterdir():  # a process that is killed takes nothing away
        if other.name.startswith(".graphduel-"):
            other.unlink()
    assert os.WIFSIGNALED(status), f"{writer.file}: a save was not killed at byte {size}"
    assert os.WTERMSIG(status) == signal.SIGXFSZ


if __name__ == "__main__":
    for each in WRITERS:
        for line in attempts(Path(sys.argv[1]), each, lambda path, size, each=each: _killed(each, path, size)):
            print(line)
