"""Random nested programs of control flow over vectors: made from a seed, then run by either engine.

A program is an expression over an environment of vectors. It is drawn whole before it is run, so that every engine
runs the same one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs as g

SIZE = 3
STEPS = np.random.default_rng(7).uniform(-1, 1, (4, SIZE))
MIX = np.random.default_rng(8).uniform(-0.6, 0.6, (SIZE, SIZE))

Expression = tuple[Any, ...]


def draw(rng: np.random.Generator, depth: int, names: int, loops: bool = True) -> Expression:
    """An expression over `names` vectors; without `loops`, while_loop is left out."""
    if depth == 0 or rng.random() < 0.1:
        return ("name", int(rng.integers(names)))
    kind = str(rng.choice([kind for kind in _DRAW if loops or kind != "while"]))
    return kind, *_DRAW[kind](rng, lambda extra=0: draw(rng, depth - 1, names + extra, loops))


_DRAW: dict[str, Any] = {
    "unary": lambda rng, more: (str(rng.choice(["tanh", "sin", "square", "negative"])), more()),
    "binary": lambda rng, more: (str(rng.choice(["add", "subtract", "multiply", "maximum"])), more(), more()),
    "mix": lambda rng, more: (more(),),
    "moved": lambda rng, more: (int(rng.integers(len(_MOVED))), more(), more()),
    "cond": lambda rng, more: (more(), more(), more()),
    "switch": lambda rng, more: (more(), [more() for _ in range(int(rng.integers(1, 4)))]),
    "scan": lambda rng, more: (int(rng.integers(1, 5)), bool(rng.random() < 0.5), more(), more(), more(2), more(2)),
    "fori": lambda rng, more: (int(rng.integers(0, 4)), more(), more(1)),
    "while": lambda rng, more: (int(rng.integers(0, 5)), more(), more(1)),
}


# What is read, written, summed, recomputed or drawn inside of branches and bodies.
_MOVED: tuple[Any, ...] = (
    lambda x, y: x[::-1] + y,
    lambda x, y: g.setitem(x, g.sum(y), 1),
    lambda x, y: g.take(x, np.array([2, 0, 2])) * y,
    lambda x, y: g.softmax(x) - y[:1],
    lambda x, y: g.concat([x[-1:], y[:-1]]),
    lambda x, y: x * g.tanh(g.sum(y)),
    lambda x, y: x + y * g.normal(g.random_key(3), (SIZE,)),
)


def evaluate(expression: Expression, names: list[Any]) -> Any:
    """The value of an expression: a vector."""
    kind, *rest = expression
    return _EVALUATE[kind](names, *rest)


def _cond(names: list[Any], decides: Expression, yes: Expression, no: Expression) -> Any:
    predicate = g.sum(evaluate(decides, names)) > 0.1
    return g.cond(predicate, lambda: evaluate(yes, names), lambda: evaluate(no, names))


def _switch(names: list[Any], decides: Expression, branches: list[Expression]) -> Any:
    index = g.astype(g.floor(g.sum(evaluate(decides, names)) * 3), "int64")
    # The vector reaches the branches as an operand, and again as a captured value.
    return g.switch(index, [lambda x, b=b: evaluate(b, [x, *names[1:]]) + x for b in branches], names[0])


def _scan(
    names: list[Any], count: int, backwards: bool, start: Expression, slope: Expression, step: Expression, y: Expression
) -> Any:
    def body(state: dict[str, Any], x: Any) -> Any:
        inner = [*names, state["s"], x["x"]]
        return {"n": state["n"] + 1, "s": evaluate(step, inner)}, (evaluate(y, inner) * 0.5, x["step"])

    xs = {"x": STEPS[:count] * evaluate(slope, names), "step": STEPS[:count, 0]}
    state, (ys, steps) = g.scan(body, {"n": 0, "s": evaluate(start, names)}, xs, reverse=backwards)
    return g.tanh(state["s"] + g.sum(ys, axis=0) + g.sum(steps) + state["n"])


def _fori(names: list[Any], count: int, start: Expression, step: Expression) -> Any:
    return g.fori_loop(0, count, lambda i, s: g.tanh(evaluate(step, [*names, s]) * (i + 1)), evaluate(start, names))


def _while(names: list[Any], limit: int, start: Expression, step: Expression) -> Any:
    def condition(state: Any) -> Any:
        return (state[0] < limit) & (g.sum(state[1]) < 2.0)

    return g.while_loop(
        condition, lambda s: (s[0] + 1, g.tanh(evaluate(step, [*names, s[1]])) + 0.3), (0, evaluate(start, names))
    )[1]


_EVALUATE: dict[str, Any] = {
    "name": lambda names, i: names[i],
    "unary": lambda names, op, x: getattr(g, op)(evaluate(x, names)),
    "binary": lambda names, op, x, y: getattr(g, op)(evaluate(x, names), evaluate(y, names)),
    "mix": lambda names, x: g.tanh(MIX @ evaluate(x, names)),
    "moved": lambda names, i, x, y: _MOVED[i](evaluate(x, names), evaluate(y, names)),
    "cond": _cond,
    "switch": _switch,
    "scan": _scan,
    "fori": _fori,
    "while": _while,
}
