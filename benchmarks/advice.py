"""How often `graphduel advise` is right: predictions for programs outside its fit, compared with their measured times.

`evaluate` measures and sums up. `scores` compares hits with trivial predictors, by regime, and checks the stated odds.

A prediction names the faster mode and the probability of this. It is judged if the measured times differ by more than
`DECIDED`. The Brier score (Monthly Weather Review 78, 1950) judges the stated probabilities on all rows: the mean
square of the difference between probability and outcome (0 or 1), 0 at best, 0.25 for always stating one half.

Held-out programs are random stacks, by seed, of blocks that no price was fitted to. Each is a loss over rows of
numbers. Its blocks are layers, normalisation, attention over rows, gates, rotated columns and runs of elementwise ops,
each drawn anew. Half of the programs are shallow and half deep, at three sizes; size and depth are the regimes of hit
rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial, reduce
from itertools import cycle, pairwise, product
from math import exp, inf, log
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import click
import numpy as np

import graphs
from compare import engines, workloads
from compare.advice import counting
from compare.advice.prediction import TIE, Modes, Prices, predict, winner_of
from compare.cli.options import say, write_json
from compare.engines import Engine
from compare.records.own import CountedProgram
from compare.records.record import group_by
from compare.run import progress
from compare.run.progress import Reporter
from compare.stats import proportion_interval
from compare.subjects import origin
from compare.subjects.subject import Subject
from compare.text import count_noun, echo, ratio, show_table

Array = Any
TARGET = 0.9
SIZES = ("small", "medium")
CALLS = (1, 10, 100, 1000)
"""The numbers of calls for which the choice between compiling and not is evaluated."""

ANYTHING = (0.0, inf)
"""The interval of a prediction without one."""


@dataclass(frozen=True)
class PredictionRow:
    """A prediction beside the measurement; both ratios are compiled ÷ eager.

    Times are pairs (predicted, measured) in seconds; `compile` is the extra time of the first pass over the examples.
    `ops` is the number of ops on the tape of a step. `interval` is the 95% interval of the prediction.
    """

    name: str
    predicted: float
    ratio: float
    eager: tuple[float, float]
    compiled: tuple[float, float]
    compile: tuple[float, float]
    confidence: float
    ops: int = 0
    interval: tuple[float, float] = ANYTHING

    def total_ratio(self, calls: int, which: int) -> float:
        """Return compiled ÷ eager over `calls` calls with the compilation, predicted (`which` 0) or measured (1)."""
        return (self.compiled[which] * calls + self.compile[which]) / (self.eager[which] * calls)

    @property
    def called(self) -> bool:
        """Whether the prediction is outside the tie zone."""
        return not 1 / TIE <= self.predicted <= TIE

    @property
    def hit(self) -> bool:
        """Whether the predicted winner was the faster mode."""
        return (self.predicted < 1) == (self.ratio < 1)

    @property
    def regime(self) -> str:
        """The name after the slash: a workload's size, or a program's size and depth."""
        return self.name.partition("/")[2]

    @property
    def probability(self) -> float:
        """The stated probability that the compiled mode is faster."""
        return self.confidence if self.predicted < 1 else 1 - self.confidence

    def to_dict(self, modes: Modes) -> dict[str, Any]:
        """Return plain JSON values, with the names of the modes; times are `[predicted, measured]`."""
        shown = {"predicted_ratio": self.predicted, "measured_ratio": self.ratio, "confidence": self.confidence}
        return {
            "name": self.name, **shown, "interval": list(self.interval), "ops": self.ops,
            "winner": winner_of(self.predicted, modes), "hit": self.hit if self.called else None,
            "eager_seconds": list(self.eager), "compiled_seconds": list(self.compiled),
            "compile_seconds": list(self.compile),
        }  # fmt: skip


def names(engine: Engine, only: str | None = None) -> list[str]:
    """Return the workloads that the glob matches, at each size; only small ones if compiling is slow."""
    sizes = SIZES[:1] if engine.compiles_slowly else SIZES
    whole = (f"{name}/{size}" for name, size in product(workloads.names(), sizes))
    return [name for name in whole if only is None or fnmatchcase(name, only) or fnmatchcase(name.split("/")[0], only)]


def evaluate(
    asked: Subject, prices: Prices, chosen: Sequence[str], reporter: Reporter, rows: str = ""
) -> dict[str, Any]:
    """Measure each program in a process of its own; returns rows, hit rates, and the reasons for programs left out."""
    judged, left_out = [], {}
    with counting.workers(asked, len(chosen), reporter, rows, prices.threads) as workers:
        for name, program in workers.each(chosen):
            why = program if isinstance(program, str) else program.refused
            if why is None and isinstance(program, CountedProgram):
                judged.append(row(program, prices))
            else:
                left_out[name] = why
    return {
        **summary(judged, prices.modes),
        "left_out": left_out,
        "machine": prices.machine,
        "calibration_seconds": prices.seconds,
    }


def row(program: CountedProgram, prices: Prices) -> PredictionRow:
    """Make the row of a program that was timed. Raises ValueError for one that was not timed or is refused."""
    said, taken = predict(prices, program), program.timed
    if taken is None or said.eager is None or said.compiled is None or said.ratio is None:
        raise ValueError(f"{program.name} was not timed, or it is refused: {said.refused}")
    return PredictionRow(
        program.name,
        said.ratio,
        taken.compiled / taken.eager,
        (said.eager, taken.eager),
        (said.compiled, taken.compiled),
        (said.compile or 0.0, taken.compile),
        said.confidence,
        said.ops,
        said.interval or ANYTHING,
    )


def summary(rows: Sequence[PredictionRow], modes: Modes) -> dict[str, Any]:
    """Sum up rows: hit rates outside the tie zone, once warm and over some calls with compilation, and errors.

    `always_compiled` is the number of hits of always naming the compiled mode. `covered` counts the measured ratios
    inside the interval of their prediction. `scores` are those of the function `scores`.
    """
    warm = _rate([(row.predicted, row.ratio) for row in rows])
    pairs = {calls: [(row.total_ratio(calls, 0), row.total_ratio(calls, 1)) for row in rows] for calls in CALLS}
    return {
        "tie_zone": [1 / TIE, TIE],
        "rows": [row.to_dict(modes) for row in rows],
        **warm,
        "target": TARGET,
        "met": warm["rate"] is not None and warm["rate"] >= TARGET,
        "scores": scores(rows, modes),
        "covered": sum(row.interval[0] <= row.ratio <= row.interval[1] for row in rows),
        "over_calls": {str(calls): _rate(ratios) for calls, ratios in pairs.items()},
        "all_calls": _rate([pair for ratios in pairs.values() for pair in ratios]),
        "ratio_off_by": _off((row.predicted, row.ratio) for row in rows),
        "eager_off_by": _off(row.eager for row in rows),
        "compiled_off_by": _off(row.compiled for row in rows),
        "compile_off_by": _off(row.compile for row in rows),
    }


def _rate(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the hit rate of pairs of predicted and measured ratio outside the tie zone, with its 95% interval."""
    called = [(predicted, ratio) for predicted, ratio in pairs if not 1 / TIE <= predicted <= TIE]
    hits = sum((predicted < 1) == (ratio < 1) for predicted, ratio in called)
    always = sum(ratio < 1 for _, ratio in called)
    return {"called": len(called), **_share(hits, len(called)), "always_compiled": always}


def _share(hits: int, of: int) -> dict[str, Any]:
    rate = proportion_interval(hits, of) if of else None
    return {"hits": hits, "rate": rate and rate.estimate, "interval": rate and rate.bounds()}


def _off(pairs: Iterable[tuple[float, float]]) -> float | None:
    """Return the median factor between predicted and measured values, either way; None without pairs."""
    off = [abs(log(predicted / measured)) for predicted, measured in pairs if predicted > 0 and measured > 0]
    return exp(median(off)) if off else None


DECIDED = 1.15
"""Measured times that differ by no more than this factor have no winner."""
STATED = (0.5, 0.75, 0.95, 1.0)
"""The ends of the groups in which stated probabilities are compared with outcomes."""


def scores(rows: Sequence[PredictionRow], modes: tuple[str, str]) -> dict[str, Any]:
    """Count hits among rows with a winner, in all, by regime and for trivial predictors, and add the Brier score."""
    decided = [row for row in rows if max(row.ratio, 1 / row.ratio) > DECIDED]
    groups = group_by(decided, lambda row: row.regime)
    # Trivial predictors: always one mode, or a bound on the number of ops, the best in hindsight.
    eager, compiled = modes
    wins = sum(row.ratio < 1 for row in decided)
    bounds = {row.ops for row in decided}
    above = {n: sum((row.ops > n) == (row.ratio < 1) for row in decided) for n in bounds}
    best = max(sorted(above), key=above.__getitem__, default=0)
    trivial = {
        f"always {compiled}": wins,
        f"always {eager}": len(decided) - wins,
        f"{compiled} above {best} ops": above.get(best, 0),
    }
    return {
        "beyond": DECIDED,
        **_hits(decided),
        "predictors": trivial,
        "regimes": {name: _hits(group) for name, group in groups.items()},
        "brier": fmean((row.probability - (row.ratio < 1)) ** 2 for row in rows) if rows else None,
        "brier_of_one_half": 0.25,
        "stated": _calibration_rows(rows),
    }


def _hits(rows: Sequence[PredictionRow]) -> dict[str, Any]:
    return {"of": len(rows), **_share(sum(row.hit for row in rows), len(rows))}


def _calibration_rows(rows: Sequence[PredictionRow]) -> list[dict[str, float]]:
    """Return for each group of stated probabilities the number of rows, their mean, and the share that came true."""
    groups = []
    for low, high in pairwise(STATED):
        group = [row for row in rows if low <= row.confidence and (row.confidence < high or high == 1)]
        if group:
            stated, happened = fmean(row.confidence for row in group), fmean(row.hit for row in group)
            groups.append({"rows": len(group), "stated": stated, "happened": happened})
    return groups


# Held-out programs --------------------------------------------------------------------------------------------------


Weights = list[Array]
Block = Callable[[Weights, Array], Array]

BYTES: Mapping[str, tuple[tuple[int, int], ...]] = {
    "rows of 4 KiB": ((8, 96), (30, 33), (1, 700)),
    "rows of 256 KiB": ((200, 310), (64, 900), (450, 150)),
    "rows of 4 MiB": ((3000, 330), (1500, 650), (4500, 220)),
}
"""The rows and columns of the float32 values between blocks, by their approximate bytes."""
DEPTHS = {"2 to 4 blocks": (2, 4), "8 to 14 blocks": (8, 14)}
ATTENTION_ROWS = 600
"""The largest number of rows for attention: beyond it, scores of row pairs would be nearly all of the work."""
COUNT = 48


def make_program(size: str, depth: str, seed: str) -> tuple[Callable[..., Array], list[Weights], tuple[Array]]:
    """Make the program of a seed: its loss, its weights and its rows."""
    random = Random(seed)
    rng = np.random.default_rng(random.getrandbits(64))
    rows, columns = random.choice(BYTES[size])
    admitted = [block for block in BLOCKS if block is not attention_over_rows or rows <= ATTENTION_ROWS]
    drawn = [random.choice(admitted)(random, rng, rows, columns) for _ in range(random.randint(*DEPTHS[depth]))]
    blocks, weights = [block for block, _ in drawn], [values for _, values in drawn]
    x = _normal(rng, rows, columns)

    def loss(params: list[Weights], x: Array) -> Array:
        h = reduce(lambda h, pair: pair[0](pair[1], h), zip(blocks, params, strict=True), x)
        return graphs.mean(h * h)

    return loss, weights, (x,)


def layer(random: Random, rng: np.random.Generator, _: int, columns: int) -> tuple[Block, Weights]:
    """Make a block: a dense layer through fewer columns and back, added to its input."""
    inner, act = max(2, columns // random.choice((2, 4, 8))), random.choice((graphs.relu, graphs.tanh, graphs.sigmoid))

    def block(weights: Weights, h: Array) -> Array:
        return h + act(h @ weights[0] + weights[1]) @ weights[2]

    return block, [_normal(rng, columns, inner), _normal(rng, inner), _normal(rng, inner, columns)]


def normalised_block(_: Random, rng: np.random.Generator, __: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that centres each row, divides it by its deviation, then scales and shifts it."""

    def block(weights: Weights, h: Array) -> Array:
        centred = h - graphs.mean(h, axis=1, keepdims=True)
        return (
            centred / graphs.sqrt(graphs.mean(centred * centred, axis=1, keepdims=True) + 1e-3) * weights[0]
            + weights[1]
        )

    return block, [_normal(rng, columns), _normal(rng, columns)]


def attention_over_rows(_: Random, rng: np.random.Generator, __: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that mixes rows by the softmax of their products."""

    def block(weights: Weights, h: Array) -> Array:
        return graphs.softmax((h * weights[0]) @ h.T / columns, axis=1) @ h

    return block, [_normal(rng, columns)]


def gated_block(random: Random, rng: np.random.Generator, _: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that mixes its input with the input rotated by some columns, by a gate for each column."""
    by = random.randrange(1, columns)

    def block(weights: Weights, h: Array) -> Array:
        turned = graphs.concat([h[:, by:], h[:, :by]], axis=1)
        gate = graphs.sigmoid(h * weights[0])
        return gate * h + (1 - gate) * turned

    return block, [_normal(rng, columns)]


def elementwise_block(random: Random, rng: np.random.Generator, _: int, columns: int) -> tuple[Block, Weights]:
    """Make a block of several elementwise ops, none of which grows without bound."""
    steps = [random.choice(STEPS) for _ in range(random.randint(2, 6))]

    def block(weights: Weights, h: Array) -> Array:
        return reduce(lambda h, step: step(h, weights[0]), steps, h)

    return block, [_normal(rng, columns)]


def pooled_block(_: Random, rng: np.random.Generator, __: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that subtracts the weighted maximum of each column."""

    def block(weights: Weights, h: Array) -> Array:
        return h - weights[0] * graphs.max(h, axis=0, keepdims=True)

    return block, [_normal(rng, columns)]


STEPS: tuple[Callable[[Array, Array], Array], ...] = (
    lambda h, w: graphs.cos(h) + w,
    lambda h, w: graphs.exp(-h * h) * w,
    lambda h, w: graphs.where(h > 0, h, h * w),
    lambda h, w: graphs.log(1 + graphs.abs(h)) - w,
    lambda h, w: graphs.maximum(h, w) / 2,
    lambda h, w: h / (1 + graphs.square(w)),
)
BLOCKS = (layer, normalised_block, attention_over_rows, gated_block, elementwise_block, pooled_block)


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]) if len(shape) > 1 else 1.0)


HELD_OUT = {
    f"held-out {number}/{size}, {depth}": partial(make_program, size, depth, f"0/{number}")
    for number, (size, depth) in zip(range(COUNT), cycle(product(BYTES, DEPTHS)))
}
"""The programs by name, as `--rows` takes them; size and depth follow the slash."""


# The command ----------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--held-out", is_flag=True, help="Predict programs drawn at random, and not the workloads.")
@click.option("--rows", metavar="FILE.py:NAME", help="Predict a table of functions that return (loss, params, inputs).")
@click.option("--only", metavar="GLOB", help="Predict the workloads alone that match.")
@click.option("--framework", default=engines.OWN, show_default=True, help="Predict whether compiling pays there.")
@click.option("--mode", help="Predict this compiling mode of the framework; by default its first.")
@click.option("--calibration", type=click.Path(path_type=Path), help="Keep the prices of this machine here.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the rows and the scores to this file.")
def main(
    held_out: bool, rows: str | None, only: str | None, framework: str, mode: str | None,
    calibration: Path | None, path: Path | None,
) -> None:  # fmt: skip
    """Predict the workloads, measure them, and show how often the prediction was right."""
    if framework != engines.OWN and (rows or held_out):
        raise click.UsageError("--rows and --held-out work with graphduel's engines, not with a --framework")
    asked = counting.subject_of(framework, "", "", mode)
    prices = counting.find_prices(asked, calibration, progress.reporter(), partial(say, err=True))
    table = f"{Path(__file__)}:HELD_OUT" if held_out else rows or ""
    chosen = list(origin.load_object(table)) if table else names(asked.adapter, only)
    judged = evaluate(asked, prices, chosen, progress.reporter(), table)
    show(judged, prices)
    write_json(path, judged)


def show(judged: Mapping[str, Any], prices: Prices) -> None:
    """Print the predictions beside the measurements, and the scores."""
    eager, compiled = prices.modes
    columns = ("row", "said", "predicted", "measured", "right")
    echo(f"Ratios are {compiled} ÷ {eager}.")
    show_table(columns, [_row(row) for row in judged["rows"]], whole=columns)
    for name, why in judged["left_out"].items():
        say(f"left out: {name}: {why}", err=True)
    _say_rate("once warm", judged, prices.modes)
    for calls, rate in judged["over_calls"].items():
        _say_rate(f"over {count_noun(int(calls), 'call')} with the compilation", rate, prices.modes)
    scores = judged["scores"]
    if scores["of"]:
        trivial = ", ".join(f"{name} {hits}" for name, hits in scores["predictors"].items())
        said = f"{scores['of']} have times that differ by more than {scores['beyond']:.2f}. Right: {scores['hits']}"
        say(f"{said}. Trivial predictors: {trivial}.")
    for regime, hits in scores["regimes"].items():
        say(f"  {regime}: {hits['hits']} of {hits['of']}")
    if scores["brier"] is not None:
        stated = ", ".join(
            f"{group['stated']:.0%} happened in {group['happened']:.0%} of {group['rows']}"
            for group in scores["stated"]
        )
        say(f"Brier score: {scores['brier']:.3f}; a constant prediction of one half has 0.25. Stated odds: {stated}.")
    say(f"Measured ratios in the predicted interval of 95%: {judged['covered']} of {len(judged['rows'])}.")


def _say_rate(when: str, rate: dict[str, Any], modes: tuple[str, str]) -> None:
    if not rate["called"]:
        echo(f"Predictions {when}: none.")
        return
    low, high = rate["interval"]
    share = f"{rate['rate']:.0%} ({low:.0%} to {high:.0%})"
    right = rate["always_compiled"]
    always = f"the answer `{modes[1]}` is right in {right}, `{modes[0]}` in {rate['called'] - right}"
    say(f"Right {when}: {rate['hits']} of {rate['called']}, {share}; {always}.")


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    right = {None: "", True: "yes", False: "no"}[row["hit"]]
    return row["name"], row["winner"], ratio(row["predicted_ratio"]), ratio(row["measured_ratio"]), right


if __name__ == "__main__":
    main()
