"""Results files, altered at random: `python -m tests.fuzz.results --count 2000`.

Values are replaced, moved, doubled and left out, numbers made huge and negative, lines and bytes damaged. Every command
that reads the file must answer or refuse it, in bounded time, and never end in an error of Python's own.
"""

from __future__ import annotations

import copy
import gzip
import json
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np
from click.testing import CliRunner

import compare
import graphs as g
from compare.cli.command import graphduel
from compare.errors import CompareError
from compare.records import results
from compare.report.figures import style
from tests.fuzz.artifacts import damaged_bytes

Lines = list[dict[str, Any]]
Way = Callable[[Lines, Random], None]
REPORTS = Path(__file__).parents[2] / "reports"
JUNK: list[Any] = [
    None, -1, 0, 1, True, 0.5, 1e300, 10**30, "x", "", "\x1b[2J", "\ud800", "ok", "unsupported", "dynamic", [], {},
    [[]], [0.5], [None], ["x"], {"": {}}, {"a": 1}, "a" * 500,
]  # fmt: skip
NUMBERS = (0, -1, True, 1e300, 1e-300, 2**63, 10**18, 1e18, 1e-18)


def loss(w: Any, x: Any) -> Any:
    hidden = g.tanh(x @ w)
    return g.sum(hidden * hidden)


def originals() -> list[Lines]:
    """The lines of a comparison of a user's function, and two of each kind of the runs that are shipped."""
    inputs = [(np.ones((3, 2)), np.ones((rows, 3))) for rows in (2, 4, 2)]
    own = compare.compare(loss, inputs, seconds=0.01, processes=0).records
    shipped = [results.read(REPORTS / name / results.RESULTS) for name in ("frameworks", "models")]
    found = [list(map(results.to_json, records)) for records in (own, *map(_two_of_each, shipped))]
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _two_of_each(records: list[Any]) -> Iterator[Any]:
    seen: Counter[type] = Counter()
    for record in records:
        seen[type(record)] += 1
        if seen[type(record)] <= 2:
            yield record


# Ways to alter one --------------------------------------------------------------------------------------------------


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container inside, with each key."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _value(lines: Lines, rng: Random) -> None:
    """One value of a line replaced, moved, left out or doubled."""
    places = list(_places(rng.choice(lines)))
    (holder, key), (other, there) = rng.choice(places), rng.choice(places)
    kind = rng.randrange(6)
    if kind == 0:
        holder[key] = copy.deepcopy(rng.choice(JUNK))
    elif kind == 1:
        holder[key] = copy.deepcopy(other[there])
    elif kind == 2:
        del holder[key]
    elif kind == 3 and type(holder[key]) in (int, float):
        holder[key] = rng.choice([*NUMBERS, holder[key] + 1, -holder[key], holder[key] * 10**6])
    elif isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(rng.choice([holder[key], *JUNK])))
    else:
        holder[rng.choice(["x", "", f"{key}x", "arms", "kind"])] = copy.deepcopy(holder[key])


def _line(lines: Lines, rng: Random) -> None:
    """Lines left out, doubled or in another order."""
    at, kind = rng.randrange(len(lines)), rng.randrange(3)
    if kind == 0 and len(lines) > 1:
        del lines[at]
    elif kind == 1:
        lines.insert(rng.randrange(len(lines)), copy.deepcopy(lines[at]))
    else:
        rng.shuffle(lines)


WAYS: tuple[Way, ...] = (_value, _value, _value, _value, _line)


def altered(lines: Lines, rng: Random) -> bytes:
    """A results file made of these lines, altered in one place or a few; sometimes its bytes are."""
    lines = copy.deepcopy(lines)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        rng.choice(WAYS)(lines, rng)
    data = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    return damaged_bytes(data, rng) if rng.random() < 0.1 else data


# Judging one --------------------------------------------------------------------------------------------------------


def outcomes(folder: Path, earlier: Path) -> Iterator[str]:
    """How each command ends that reads the results in a folder; every other error than a refusal is raised."""
    for words in (["export"], ["diff", str(earlier)], ["report"]):
        done = CliRunner().invoke(graphduel, [*words, str(folder)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert "Traceback" not in done.output
        done.output.encode()
        yield f"{words[0]}: {done.exit_code}"


def is_refused(path: Path) -> bool:
    """Whether the file is refused as it is read: then every command says the same."""
    try:
        results.read(path)
    except CompareError:
        return True
    return False


def _picture(_figure: Any, kind: str) -> bytes:
    """In place of what matplotlib paints, which takes most of the time and reads no record."""
    return b'<svg width="10pt" height="5pt"></svg>' if kind == "svg" else b""


def fuzz(count: int, seed: int, folder: Path, seconds: int = 60) -> Counter[str]:
    """What became of so many altered files, by command and exit code. Raises what none may raise, the file kept."""
    files, found, painted = originals(), Counter[str](), style.render
    style.render = _picture
    try:
        earlier = folder / "earlier"
        earlier.mkdir()
        (earlier / results.RESULTS).write_text("".join(f"{json.dumps(line)}\n" for line in files[0]))
        for number in range(count):
            rng, run = Random(f"{seed}, {number}"), folder / "altered"
            run.mkdir()
            data, is_packed = altered(rng.choice(files), rng), rng.random() < 0.1
            path = run / (results.PACKED if is_packed else results.RESULTS)
            path.write_bytes(gzip.compress(data) if is_packed else data)
            signal.alarm(seconds)  # ends the process: nothing may take that long
            try:
                found.update(["refused"] if is_refused(path) else outcomes(run, earlier))
            except Exception as error:
                error.add_note(f"seed {seed}, file {number}: {path}")
                raise
            finally:
                signal.alarm(0)
            shutil.rmtree(run)
    finally:
        style.render = painted
    return found


@click.command()
@click.option("--count", default=2_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(count: int, seed: int) -> None:
    """Alter so many files, read each by every command, and print what became of them."""
    for name, times in sorted(fuzz(count, seed, Path(tempfile.mkdtemp())).items()):
        click.echo(f"{name:<12} {times:>8,}")


if __name__ == "__main__":
    main()
