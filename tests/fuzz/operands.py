"""Calls with a wrong operand, in every engine: `python -m tests.fuzz.operands --count 6000`.

Each op of the registry, and loops and branches, is called with its samples, one operand of which is longer, shorter,
empty, of another rank or dtype, or holds positions that no axis has. What NumPy's kernels refuse, native code must
refuse with the same error, and what they give it must give.

With `--guards behind` (or `before`) every array lies beside memory that nobody may touch, and has pages of its own, so
that native code that leaves one ends the process. Calls run in a process of their own, which says which one it began.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

import graphs as g
import static
from graphs.errors import GraphError
from tests.helpers.slow import spread
from tests.helpers.wrong_operands import OPS, Array, samples_of, variants

BACKENDS = ("numpy", "native", "auto")
TOLERANCE = {2: 5e-3, 4: 1e-4, 8: 1e-9, 16: 1e-9}  # by the bytes of an element


class Call(NamedTuple):
    """A function, and arrays of which one is wrong."""

    title: str
    function: Callable[..., Any]
    arrays: tuple[Array, ...]


# Loops and branches: what each is called with first.
ROWS, STATE, NUMBER = np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0, 1, 3), np.asarray(2)
CONTROL: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "scan": (lambda s, x: g.scan(lambda c, row: (g.tanh(c + row), c * 2), s, x), (STATE, ROWS)),
    "scan of two": (
        lambda s, x, y: g.scan(lambda c, p: (c + p[0] * p[1], c), s, (x, y)),
        (STATE, ROWS, ROWS[:, :1].copy()),
    ),
    "scan and sort": (lambda s, x: g.scan(lambda c, row: (c + g.sort(row), g.tanh(c) * 2), s, x), (STATE, ROWS)),
    "scan of numbers": (
        lambda s, x: g.scan(lambda c, a: (g.sin(c) + a, g.sum(g.sort(x)) * c), s, x),
        (STATE[0], STATE),
    ),
    "gradient of a scan": (
        lambda s, x: static.grad(lambda s: g.sum(g.scan(lambda c, row: (g.tanh(c * row), c), s, x)[0]))(s),
        (STATE, ROWS),
    ),
    "while_loop": (
        lambda x, n: g.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, x)),
        (ROWS, NUMBER),
    ),
    "switch": (lambda n, x: g.switch(n, [lambda x: x * 2, g.tanh, lambda x: x - x[0]], x), (NUMBER, ROWS)),
    "cond": (lambda p, x, y: g.cond(p, lambda: x + y, lambda: x * y), (np.asarray(True), ROWS, STATE)),
    "fori_loop": (lambda x, y: g.fori_loop(0, 3, lambda i, s: s * y + i, x), (ROWS, STATE)),
    "max_pool": (static.grad(lambda x: g.sum(g.max_pool2d(x, 2, 1))), (np.ones((1, 1, 4, 3)),)),
    "index": (lambda x, i: x[i, 1:] * 2, (ROWS, np.array([0, 3, -1]))),
    "one_hot": (lambda i: g.one_hot(i, 3), (np.array([0, 2, 1]),)),
}  # fmt: skip


def calls() -> Iterator[Call]:
    """Every call with one wrong operand."""
    for name in OPS:
        for sample in samples_of(name):
            for what, arrays in variants(sample.arrays, values=True):
                yield Call(f"{sample}, {what}", sample, arrays)
    for name, (function, operands) in CONTROL.items():
        for what, arrays in variants(tuple(map(np.asarray, operands)), values=True):
            yield Call(f"{name}, {what}", function, arrays)


def outcome(call: Call, backend: str, arena: bool = True) -> Any:
    """What a backend gives, or the error that it raises."""
    try:
        return static.compile(call.function, *call.arrays, backend=backend, arena=arena)(*call.arrays)
    except GraphError as error:
        return error


def check(call: Call, arena: bool = True) -> str:
    """What became of a call: "refused" or "ran". Raises AssertionError where the backends do not agree.

    Raises what is no error of ours, too.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, *others = [outcome(call, backend, arena) for backend in BACKENDS]
    for found in others:
        if isinstance(expected, Exception) or isinstance(found, Exception):
            assert _refusal(found) == _refusal(expected), (found, expected)
        else:
            for one, other in zip(g.tree.leaves(found), g.tree.leaves(expected), strict=True):
                assert_alike(one, other)
    return "refused" if isinstance(expected, Exception) else "ran"


def _refusal(found: Any) -> tuple[type, str]:
    """The kind of an error, and the op that it names: what NumPy says of an index, native code says in other words."""
    return type(found), str(found).partition(":")[0] if isinstance(found, Exception) else ""


def assert_alike(found: Any, expected: Any, narrowest: int = 16) -> None:
    """Raise AssertionError where arrays differ by more than rounding, in floats of so many bytes or of their own."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = TOLERANCE[min(narrowest, found.dtype.itemsize)]
    scale = max(1.0, float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def run(cases: Sequence[tuple[int, Call]], guards: str, progress: Path) -> Counter[str]:
    """What became of these calls; those that fail are printed. The number of each is written down as it begins."""
    found: Counter[str] = Counter()
    around: Any = contextlib.nullcontext()
    if guards:
        from tests.helpers.guarded import guarded

        around = guarded(before=guards == "before")
    with around, progress.open("w") as file:
        for number, case in cases:
            file.seek(0)
            file.write(f"{number:<9}")
            file.flush()
            # In memory that is guarded, and without an arena: what lies in one is beside other values.
            call = case._replace(arrays=tuple(np.array(array, order="K") for array in case.arrays)) if guards else case
            try:
                found[check(call, arena=not guards)] += 1
            except Exception as error:  # noqa: BLE001  (each is printed)
                found["failed"] += 1
                click.echo(f"{number}, {call.title}: {type(error).__name__}: {str(error)[:600]}")
    return found


@click.command()
@click.option("--count", default=6000, show_default=True, help="Calls, spread evenly over all.")
@click.option("--only", default="", help="Those whose title holds this.")
@click.option(
    "--guards", default="", type=click.Choice(["", "behind", "before"]), help="Where nobody may touch memory."
)
@click.option("--here", is_flag=True, help="In this process, under the tools that watch it.")
@click.option("--start", default=0, help="The number of the first call.")
def main(count: int, only: str, guards: str, here: bool, start: int) -> None:
    """Make wrong calls in every engine, and print what became of them."""
    every = [(number, call) for number, call in enumerate(calls()) if only in call.title]
    some = spread(len(every), min(count, len(every)))
    cases = [case for at, case in enumerate(every) if at in some and case[0] >= start]
    progress = Path(tempfile.gettempdir()) / f"operands-{guards or 'plain'}.txt"
    if here:
        found = run(cases, guards, progress)
        click.echo(f"{', '.join(f'{n:,} {what}' for what, n in sorted(found.items()))} of {len(cases):,}")
        sys.exit(bool(found["failed"]))
    ended, first = 0, start
    while True:
        options = ["--count", str(count), "--only", only, "--guards", guards, "--here", "--start", str(first)]
        code = subprocess.run([sys.executable, "-m", "tests.fuzz.operands", *options], check=False).returncode
        if code >= 0:
            click.echo(f"{ended} ended the process")
            sys.exit(1 if code or ended else 0)
        ended, first = ended + 1, int(progress.read_text()) + 1
        click.echo(f"{first - 1} ended the process with the signal {-code}: {dict(every)[first - 1].title}")


if __name__ == "__main__":
    main()
