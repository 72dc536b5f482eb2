"""Random programs over an axis that is padded, and how they are called: right numbers or a refusal, nothing else.

`python -m tests.fuzz.padded CALLS [SEED] [careful]` counts what calls give. A program draws its ops from a generator
of its own seed while it runs, so that every trace of it is the same program. Many programs forget to mask, which must
be refused; careful ones mask all that they must, and must be taken.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import dynamic
import graphs as g
import static
from graphs import tree
from graphs.errors import GraphError, ShapeError

WIDTH = 2
POLICIES: Any = [("bucket", (4,)), ("bucket", (3, 6)), ("pad", (5,)), ("pad", None), ("bucket", None)]
DIMS = (("T", None), ("T",), None, None, ("T",))


def arguments(rng: np.random.Generator, size: int) -> tuple[Any, ...]:
    """Rows, a mask, weights, a length, and indices; some of the rows that are real are masked too."""
    mask = np.ones(size, bool) if rng.random() < 0.7 else rng.random(size) < 0.7
    signs = rng.choice([-1, 0, 1, 3])
    rows = rng.normal(size=(size, WIDTH)) if signs == 3 else signs * abs(rng.normal(size=(size, WIDTH)))
    length = np.array(size if rng.random() < 0.7 else rng.integers(0, size + 1))
    return rows, mask, rng.normal(size=WIDTH), length, rng.integers(0, size, size)


class Program:
    """A function of `arguments`, of which the seed says what it does."""

    __name__ = "program"

    def __init__(self, seed: int, careful: bool = False) -> None:
        self.seed, self.careful = seed, careful

    def __call__(self, rows: Any, mask: Any, weights: Any, length: Any, places: Any) -> Any:
        """One number, or several values."""
        return Steps(self, rows, mask, weights, length, places).result()

    @property
    def function(self) -> Any:
        """It, or its gradient, in either engine."""
        rng = np.random.default_rng(self.seed + 1)
        self.single = rng.random() < 0.5
        if not self.single:
            return self
        return lambda *args: g.sum(g.tanh(self(*args)))


class Steps:
    """The values of a program so far: by row (T), and single numbers."""

    def __init__(self, program: Program, rows: Any, mask: Any, weights: Any, length: Any, places: Any) -> None:
        self.rng, self.careful = np.random.default_rng(program.seed), program.careful
        self.mask, self.weights, self.length, self.places = mask, weights, length, places
        self.rows = rows
        self.count = mask.shape[0]
        self.by_row = [rows[:, 0], rows @ weights]
        self.numbers = [weights[0], g.sum(weights)]

    def result(self) -> Any:
        """What is left after some steps."""
        kinds = [self._mapped, self._masked, self._moved, self._scanned, self._scanned, self._reduced, self._looped]
        for _ in range(self.rng.integers(2, 7)):
            self._pick(kinds)()
        for _ in range(self.rng.integers(1, 3)):
            self._pick([self._reduced, self._reduced, self._scanned])()
        picked = [self.numbers[-1], self._one(self.numbers)]
        if self.rng.random() < 0.3:
            picked.append(g.sum(self._where(self.by_row[-1], 0.0)))
        return g.stack(picked)

    def _pick(self, masked: list[Any], careless: Sequence[Any] = ()) -> Any:
        choices = [*masked, *(() if self.careful else careless)]
        return choices[self.rng.integers(len(choices))]

    def _one(self, values: list[Any]) -> Any:
        """One of the values, more often a late one."""
        return values[-1 - int(len(values) * self.rng.random() ** 2)]

    def _where(self, value: Any, other: Any) -> Any:
        kind = self.rng.integers(4)
        if kind == 0 and other == 0.0:
            return value * self.mask
        if kind == 1:
            return g.where(g.arange(self.count) < self.length, value, other)
        return g.where(self.mask, value, other)

    def _mapped(self) -> None:
        x, s = self._one(self.by_row), self._one(self.numbers)
        y = self._one(self.by_row)
        make = self._pick(
            [
                lambda: g.tanh(x),
                lambda: x * s,
                lambda: x + y,
                lambda: g.maximum(x, y),
                lambda: x - s,
                lambda: x * y + 0.5,
                lambda: g.sin(x) * g.astype(g.arange(self.count), "float64"),
                lambda: g.where(x > s, x, y),
                lambda: g.minimum(x, 0.25),
                lambda: g.softmax(self._where(x, -np.inf)),
                lambda: g.sum(g.tanh(x[:, None] * y[None, :]) * self.mask[None, :], axis=1),
            ],
            [lambda: x / self.count, lambda: x - g.mean(y)],
        )
        self.by_row.append(make())

    def _masked(self) -> None:
        self.by_row.append(self._where(self._one(self.by_row), self._pick([0.0, 0.0, 1.0, 0.3], [-np.inf, np.inf])))

    def _moved(self) -> None:
        x = self._one(self.by_row)
        y = self._one(self.by_row)
        make = self._pick(
            [
                lambda: g.concat([g.zeros(1), x[:-1]]),
                lambda: g.cumulative_sum(x),
                lambda: g.flip(g.cumulative_sum(g.flip(self._where(x, 0.0)))),
                lambda: g.minimum(g.sort(self._where(x, np.inf)), 9.0),
                lambda: g.take(x, g.argsort(self._where(y, np.inf))),
                lambda: g.reshape(g.stack([x, y], axis=1), (-1,))[::2],
                lambda: g.reshape(g.reshape(g.stack([x, y]), (-1,)), (2, -1))[1],
                lambda: g.flip(g.flip(x) + g.flip(y)),
            ],
            [
                lambda: g.flip(x),
                lambda: g.sort(self._where(x, np.inf)),
                lambda: g.roll(x, 1, axis=0),
                lambda: g.concat([x[1:], g.zeros(1)]),
                lambda: g.take(x, self.places),
                lambda: g.reshape(g.stack([x, y]), (-1,))[: self.count],
                lambda: g.flip(g.flip(x) + y),
            ],
        )
        self.by_row.append(make())

    def _reduced(self) -> None:
        x, s = self._one(self.by_row), self._one(self.numbers)
        two, masked = g.stack([x, self._one(self.by_row)]), self._where(x, 0.0)  # drawn here: a branch may not run
        make = self._pick(
            [
                lambda: g.sum(self._where(x, 0.0)),
                lambda: g.max(self._where(x, -np.inf)),
                lambda: g.min(self._where(x, np.inf)),
                lambda: g.sum(self._where(x, 0.0)) / g.sum(self._where(g.ones(self.count), 0.0)),
                lambda: g.astype(g.argmax(self._where(x, -np.inf)), "float64"),
                lambda: g.prod(self._where(g.tanh(x), 1.0)),
                lambda: g.astype(g.any(g.logical_and(x > s, self.mask)), "float64"),
                lambda: g.astype(g.sum(self.mask), "float64"),
                lambda: x[0],
                lambda: x @ masked,
                lambda: g.cond(s > 0, lambda: g.sum(masked), lambda: s * 2),
            ],
            [
                lambda: g.max(x),
                lambda: g.sum(x),
                lambda: g.mean(x),
                lambda: g.astype(g.argmin(g.where(self.mask, two, np.inf)), "float64"),
                lambda: x[-1],
                lambda: s * self.count,
            ],
        )
        self.numbers.append(make())

    # Loops ----------------------------------------------------------------------------------------------------------

    def _scanned(self) -> None:
        """A scan over rows, with a state of a number or two, forward or reversed."""
        x, start, outer = self._one(self.by_row), self._one(self.numbers), self._one(self.numbers)
        seed, reverse = int(self.rng.integers(2**31)), bool(self.rng.random() < 0.4)
        positions = g.arange(self.count)

        def step(state: Any, each: Any) -> Any:
            return _step(np.random.default_rng(seed), state, each, outer, self)

        state = (start, g.tanh(start), 0)
        last, rows = g.scan(step, state, (x, self.mask, positions), reverse=reverse)
        self.by_row += [rows[0], rows[1]]
        self.numbers += [last[1], last[0]]
        if self.rng.random() < 0.6:
            self.by_row.append(self._where(self._one(list(rows)), self._pick([0.0], [0.0, -np.inf])))

    def _looped(self) -> None:
        """A loop that counts: to the number of rows, to a length, or until a state is large."""
        x, s = self._one(self.by_row), self._one(self.numbers)
        kind = self._pick([0, 3], [1, 2])

        def add(i: Any, value: Any) -> Any:
            new = g.tanh(value + g.take(x, i))
            return g.where(i < self.length, new, value) if kind < 2 else new

        if kind < 3:
            self.numbers.append(g.fori_loop(0, self.count if kind != 1 else self.length, add, s))
        else:
            self.numbers.append(g.while_loop(lambda v: v < 3.0, lambda v: v + 0.4 + v * v, s))


def _step(rng: np.random.Generator, state: Any, each: Any, outer: Any, steps: Steps) -> Any:
    """One step: a new state, the mask or nothing keeping the old one where there is no row, and rows."""
    one, two, count = state
    x, on, place = each
    kinds = rng.integers(0, 99, 8)
    new = [
        lambda: one + x, lambda: g.tanh(one * 0.9 + x), lambda: g.maximum(one, x), lambda: one * outer + x,
        lambda: x, lambda: one * 1.5, lambda: g.where(x > one, x, one * 0.5), lambda: one + g.where(on, x, 0.0),
        lambda: g.sin(one) + g.scan(lambda c, w: (g.tanh(c + w * x), c), one, steps.weights)[0],
        lambda: one + g.sum(steps._where_in(on, x)), lambda: g.maximum(one, g.where(on, x, -np.inf)),
        lambda: g.cond(x > 0, lambda: one + x, lambda: one),
        lambda: one + place * 0.1, lambda: one * g.where(on, x, 1.0),
    ][kinds[0] % 14]()  # fmt: skip
    keep = [on, place < steps.length, g.logical_and(on, x > 0)][kinds[1] % 3]
    after, other = g.where(keep, new, one), [two, g.where(on, two + x, two), g.where(on, one, two)][kinds[2] % 3]
    rows = [one, after, two, x * after, g.where(on, after, 0.0), place + x]
    if not steps.careful:
        after = [after, after, new, g.where(keep, new, 0.0)][kinds[3] % 4]
        other = [other, other, after, g.maximum(two, after)][kinds[4] % 4]
        rows.append(count * one)
    return (after, other, count + 1), (rows[kinds[5] % len(rows)], [two, after, new][kinds[6] % 3])


def _where_in(self: Steps, on: Any, x: Any) -> Any:
    """All rows, in a step: each step reads the whole sequence."""
    return g.where(g.logical_and(self.mask, on), g.tanh(self.by_row[0] * x), 0.0)


Steps._where_in = _where_in  # type: ignore[attr-defined]


def outcomes(seed: int, careful: bool = False) -> list[str]:
    """What a few calls of a random program give: "right", "refused", "wrong ...", "nan", or "no program".

    A `careful` program masks what it must.
    """
    rng = np.random.default_rng(seed)
    program = Program(seed, careful)
    f = program.function
    takes = [(static.value_and_grad, dynamic.value_and_grad), (static.grad, dynamic.grad)] if program.single else []
    inside, outside = takes[rng.integers(len(takes))] if takes and rng.random() < 0.7 else (lambda h: h, dynamic_run)
    shapes, buckets = POLICIES[rng.integers(len(POLICIES))]
    jitted = static.jit(inside(f), shapes=shapes, dims=DIMS, buckets=buckets, limit=None)
    most = buckets[-1] if buckets else 5
    sizes = [most, *rng.integers(1, most + 1, 4)] if rng.random() < 0.5 else rng.integers(1, most + 1, 4)
    return [outcome(jitted, outside(f), arguments(rng, int(size))) for size in sizes]


def dynamic_run(f: Any) -> Any:
    """The function itself."""
    return f


def outcome(jitted: Any, plain: Any, args: tuple[Any, ...]) -> str:
    """What one call gives beside the unpadded function."""
    with np.errstate(all="ignore"):
        try:
            expected = plain(*args)
        except (GraphError, FloatingPointError, OverflowError):
            return "no program"
        try:
            found = jitted(*args)
        except ShapeError as error:
            return "refused" if "may change the result" in str(error) else f"wrong: {error}"
        except GraphError:
            return "no program"
    pairs = list(zip(*(map(np.asarray, tree.leaves(r)) for r in (found, expected)), strict=True))
    if any(a.shape != b.shape for a, b in pairs):
        return "wrong shape"
    if all(np.allclose(a, b, 1e-6, 1e-8, equal_nan=True) for a, b in pairs):
        return "right"
    # What padding makes NaN shows as NaN, which docs/numerics.md says.
    shown = all(np.allclose(np.where(np.isnan(a), b, a), b, 1e-6, 1e-8, equal_nan=True) for a, b in pairs)
    return "nan" if shown else f"wrong: {found} for {expected}"


def main() -> None:
    """Count what calls give, and show the seeds of those that are wrong."""
    wanted, seed = int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 0
    counts: Counter[str] = Counter()
    while counts.total() - counts["no program"] < wanted:
        for result in outcomes(seed, "careful" in sys.argv):
            counts[result.split(":")[0]] += 1
            if result.startswith("wrong") or (result == "refused" and "careful" in sys.argv):
                print(seed, result, flush=True)
        seed += 1
    print(dict(counts), "up to seed", seed)


if __name__ == "__main__":
    main()
