"""Random programs of views and changes in place, as source for PyTorch, for the tape and for a graph.

A program is made line by line beside PyTorch, which leaves out the lines that it refuses. It is a function of `t` (the
module), `x` of shape (3, 4) and `w` of shape (4,), and returns all tensors that it has made.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

X = np.arange(12.0).reshape(3, 4) % 5 - 1.5
W = np.array([1.0, -2.0, 0.5, 3.0])

BASES = [
    "x * 1", "x + w", "x * x", "t.zeros(3, 4, dtype=t.float64)", "t.zeros_like(x)", "x.clone()", "w * 2", "x @ x.T",
    "x.sum(1)", "t.ones(4, dtype=t.float64)", "(x * w).T", "x.exp()", "t.stack([w, w * 2])", "t.cat([x, x])",
    "x.new_zeros(3, 4)", "t.full((2, 3, 4), 2.0, dtype=t.float64)", "x.detach() * 1",
]  # fmt: skip
VIEWS = [
    "{v}[{key}]", "{v}[{key}]", "{v}[{key}]", "{v}.view(-1)", "{v}.reshape(-1)", "{v}.unsqueeze(0)", "{v}.squeeze()",
    "{v}.detach()", "{v}.contiguous()", "{v}.clone()", "{v}.expand(2, *{v}.shape)", "{v}.transpose(0, -1)",
    "{v}.transpose(0, -1).reshape(-1)", "{v}.transpose(0, -1).contiguous()", "{v}.movedim(0, -1)", "{v}.diagonal()",
    "{v}.chunk(2)[0]", "{v}.split(1)[-1]", "{v}.unbind(0)[-1]", "{v}.narrow(0, 0, 1)", "{v}.select(0, 0)",
    "{v}.unfold(0, 2, 1)", "{v}.flatten()", "{v}.view(2, -1)", "t.flip({v}, [0])", "t.triu({v})", "next(iter({v}))",
    "{v}.tensor_split(2)[0]", "{v}.repeat(*[1] * {v}.dim())", "{v}.swapaxes(0, -1)", "{v} * 2", "{v} * {v}",
    "{v}.sum()",
]  # fmt: skip
CHANGES = [
    "{v}.add_({value})", "{v}.mul_({value})", "{v} += {value}", "{v} *= {value}", "{v}.fill_(2.0)", "{v}.zero_()",
    "{v}.clamp_(-1, 1)", "{v}.relu_()", "{v}.masked_fill_({v} > 0.5, 7.0)", "{v}.neg_()", "{v}.div_(2)",
    "{v}.detach().add_(1)", "{v}[{v} > 0.5] = 0.25", "{v}[{key}] = {part}", "{v}[{key}] = {part}",
    "{v}[{key}] += {part}",
    "{v}[{key}] *= {part}", "{v}[{key}] -= {part}", "{v}[{key}].mul_({part})", "{v}[{key}].zero_()",
    "{v}.index_fill_(0, t.tensor([0]), 4.0)", "{v}.diagonal().add_(1)", "{v}.transpose(0, -1).mul_(2)",
]  # fmt: skip


def random_program(torch: Any, seed: int) -> tuple[str, list[str]]:
    """Return the lines of a program as the source of `f(t, x, w)`, and the names of the tensors that it returns."""
    chance = random.Random(seed)
    held: dict[str, Any] = {"t": torch, **leaves(torch)}
    names: list[str] = []
    lines: list[str] = []
    for _ in range(40):
        line, name = _random_line(chance, held, names)
        try:
            exec(line, held)
            tensors = {n: held[n].detach().numpy() for n in ([*names, name] if name else names)}
            is_tame = all(np.isfinite(a).all() and a.size and np.abs(a).max() < 1e6 for a in tensors.values())
            _ = [held[n] + 0 for n in tensors]
        except (RuntimeError, IndexError, ValueError, TypeError, StopIteration, UserWarning):
            continue  # what was changed by then stays so, and so ends the program
        if not is_tame:
            break
        lines.append(line)
        names += [name] if name else []
        if len(lines) == 9:
            break
    body = "".join(f"    {line}\n" for line in lines)
    return f"def f(t, x, w):\n{body}    return [{', '.join(names)}]\n", names


def _random_line(chance: random.Random, held: dict[str, Any], names: list[str]) -> tuple[str, str]:
    """Return a line, and the name that it gives to a new tensor, "" where it changes one."""
    if not names or chance.random() < 0.12:
        return f"b{len(names)} = {chance.choice(BASES)}", f"b{len(names)}"
    v = chance.choice(names)
    shape = tuple(held[v].shape)
    key = _random_key(chance, shape)
    part = np.empty(shape)[eval(f"np.s_[{key}]", {"np": np})].shape
    words = {"v": v, "key": key, "value": _random_value(chance, shape), "part": _random_value(chance, part)}
    if chance.random() < 0.4:
        return f"b{len(names)} = {chance.choice(VIEWS).format(**words)}", f"b{len(names)}"
    change = chance.choice(CHANGES).format(**words)
    return (f"with t.no_grad(): {change}" if chance.random() < 0.1 else change), ""


def _random_key(chance: random.Random, shape: tuple[int, ...]) -> str:
    def one(size: int) -> str:
        return chance.choice([str(chance.randrange(size)), ":", "1:", "-1:", "::2", "-1"])

    if not shape or chance.random() < 0.1:
        return "..."
    if chance.random() < 0.1:
        return str(chance.sample(range(shape[0]), min(2, shape[0])))
    return ", ".join(one(size) for size in shape[: chance.randint(1, len(shape))])


def _random_value(chance: random.Random, shape: tuple[int, ...]) -> str:
    values = [str(chance.choice([2.0, 0.5, -1.0]))] * 2
    if not shape or shape[-1] == 4:
        values.append("w" if shape else "w.sum()")
    return chance.choice([*values, "x"] if shape == (3, 4) else values)


def leaves(torch: Any) -> dict[str, Any]:
    """Return the arguments `x` and `w` as leaves that require gradients."""
    return {"x": torch.tensor(X, requires_grad=True), "w": torch.tensor(W, requires_grad=True)}


def loss(results: list[Any]) -> Any:
    """Return a number that depends on each result in its own way."""
    return sum(((i + 1) * (r * r if i % 2 else r)).sum() for i, r in enumerate(results))
