"""Tensors that a step of PyTorch's makes while it is traced: what Python may ask of them, and changes of them."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import dynamic as torch
import static
from compare.engines.graphduel.programs import RepeatedDraws, replaying
from graphs.errors import ControlFlowError, GraphError
from static.trace.step import StepTrace, stepping
from static.trace.tracing import current

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def as_tensors():
    """Where symbols are a step's tensors; outside of a trace nothing changes."""
    builder = current()
    return nullcontext() if builder is None else stepping(StepTrace(builder, {}))


def traced(f, x=X):
    """What a graph of `f` gives, whose symbols are tensors of PyTorch's."""

    def step(x):
        with as_tensors():
            return f(x)

    return static.jit(step)(torch.tensor(x))


def rows(x):
    out = torch.zeros(3, 3)
    for i in range(2):
        out[i] = x[i] * 2
    return out


def through_views(x):
    out = torch.zeros(3, 3)
    out[1:][0][2] = x[1, 0]
    part = out[2]
    part.fill_(7.0)
    part += x[0]
    out.mul_(10)
    return out


def of_a_result(x):
    y = x * 2
    y[:, 0] = 0
    return y.sum()


def one_hot(x):
    return torch.zeros(2, 3).scatter_(1, x.argmax(1).unsqueeze(1), 1) * x


def off_the_diagonal(x):
    square = x.T @ x
    return square[~torch.eye(3, dtype=torch.bool)].view(3, 2)


def by_known_values(x):
    mask = torch.arange(3) > 0
    count = int(mask.sum())
    picked = [i for i, kept in enumerate(mask.tolist()) if kept]
    return x[:, picked] * count if mask.any() and mask.sum().item() == 2 else x


def of_a_list(x):
    total, sums = 0, []
    for value in x[0].tolist():
        total = value + 0.5 * total
        sums.append(total)
    return torch.tensor(sums)


FUNCTIONS = [rows, through_views, of_a_result, one_hot, off_the_diagonal, by_known_values, of_a_list]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_graph_gives_what_the_tape_gives(f):
    with torch.no_grad():
        expected = f(torch.tensor(X))
    np.testing.assert_allclose(traced(f), expected.numpy(), rtol=1e-6)


def test_a_part_of_another_name_shows_the_change():
    def through_the_whole(x):
        out = torch.zeros(2, 3)
        flat = out.view(-1)
        out[0] = x[0]
        return flat.sum()

    def after_the_part(x):
        out = torch.zeros(2, 3)
        part = out[0]
        part += x[0]
        out.mul_(2)
        return part.sum()

    assert float(traced(through_the_whole)) == 3
    assert float(traced(after_the_part)) == 6


def test_a_row_at_a_place_that_only_the_run_knows_is_a_view():
    def f(x):
        place = x[0].argmax()  # 2
        out = torch.zeros(3, 2)
        row = out[place]
        row += x[1, :2]
        row.mul_(2)
        return out * 1

    with torch.no_grad():
        expected = f(torch.tensor(X))
    assert expected.tolist() == [[0, 0], [0, 0], [6, 8]]
    np.testing.assert_array_equal(traced(f), expected.numpy())


@pytest.mark.parametrize("convert", [False, True])
@pytest.mark.parametrize("pick", [lambda x, i: x[1], lambda x, i: x[i]], ids=["known", "of the run"])
def test_a_result_that_was_changed_by_a_view_has_the_change(pick, convert):
    def changed(x, i):
        y = x * 1
        row = pick(y, i)
        row += 1
        return y

    x, i = torch.zeros(3, 2), torch.tensor(1)
    assert changed(x, i).tolist() == [[0, 0], [1, 1], [0, 0]]
    assert static.jit(changed, convert=convert)(x, i).tolist() == [[0, 0], [1, 1], [0, 0]]


def test_an_argument_is_not_changed():
    def change(x):
        x[0] = 1.0
        return x.sum()

    with pytest.raises(GraphError, match="an argument is changed in place"):
        traced(change)


def test_what_only_a_run_knows_is_refused_with_the_line():
    with pytest.raises(ControlFlowError, match=r"test_traced_tensors\.py:\d+"):
        traced(lambda x: x[0] if x.sum() > 1 else x[1])
    with pytest.raises(ControlFlowError, match="depends on the mask"):
        traced(lambda x: x[x > 1])


def test_outside_of_a_trace_nothing_is_changed():
    made, tensor = torch.zeros(2), torch.tensor([1, 2])
    traced(rows)
    assert type(torch.zeros(2)) is type(made) is type(torch.tensor([1])) is type(tensor) is torch.Tensor


def drawn(x):
    noise = torch.randn(2, 3) + torch.rand(2, 3) + torch.bernoulli(torch.full((2, 3), 0.5))
    picked = torch.multinomial(torch.ones(5), 3, replacement=True)
    order = torch.randperm(4)
    dropped = torch.nn.functional.dropout(x, 0.5, training=True)
    return noise + dropped + picked.sum() + (order * torch.arange(4)).sum() + torch.zeros(2, 3).uniform_()


def test_each_call_draws_what_the_first_drew_on_the_tape_and_in_a_graph():
    replay = RepeatedDraws(0)

    def step(x):
        with replaying(replay), as_tensors():
            return drawn(x)

    first = step(torch.tensor(X)).numpy()
    np.testing.assert_array_equal(step(torch.tensor(X)).numpy(), first)
    np.testing.assert_allclose(static.jit(step)(X), first, rtol=1e-6)
    assert not np.array_equal(drawn(torch.tensor(X)).numpy(), first)
