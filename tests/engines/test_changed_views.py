"""Changes in place of parts and views: a graph gives what the tape gives, under all names of the memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic as torch
import static
from graphs.errors import DTypeError, GraphError
from tests.helpers.backends import BACKENDS
from tests.helpers.programs import program
from tests.helpers.together import together

X = np.arange(6, dtype=np.float32).reshape(3, 2)


def diagonal(x):
    z = x[:2] * 1
    z.diagonal().add_(1)
    return z


@torch.no_grad()
def count(held):
    held["t"] += 1
    t = held["t"]
    t *= 2


def in_a_decorated_function(x):
    held = {"t": x * 1}
    count(held)
    return held["t"]


def pieces(x):
    z = x * 1
    left, right = z.chunk(2, 1)
    left += right
    for row in z.unbind(0):
        row.mul_(2)
    for row in z:
        row += 1
    return z


def copies_stay(x):
    z = x * 1
    others = [z.clone(), torch.flip(z, [0]), z.repeat(1, 1), torch.zeros(3, 2) + z]
    z[0] += 1
    return others


def of_another_dtype(x):
    z = x * 1
    z[0] += torch.ones(2, dtype=torch.float64)
    z.add_(torch.ones(3, 2, dtype=torch.float64))
    return z


# The values of PyTorch 2.13, and its gradients in x of the sum of all results.
PROGRAMS: dict[Callable[[Any], Any], tuple[Any, Any]] = {
    program("z = torch.zeros(3, 2) | z[1] += x[0] | z * 1"): ([[0, 0], [0, 1], [0, 0]], [[1, 1], [0, 0], [0, 0]]),
    program("z = torch.ones(3, 2) | z[1] *= x[0] | z[0] -= 1 | z[2] /= 2 | z"): (
        [[0, 0], [0, 1], [0.5, 0.5]],
        [[1, 1], [0, 0], [0, 0]],
    ),
    program("z = x * 1 | z[:, -1:] += 5 | z[:, 0] += x[:, 1] | z[:, 1] *= z[:, 0] | z"): (
        [[1, 6], [5, 40], [9, 90]],
        None,
    ),
    program("z = x * 1 | row = z[1] | row += 1 | [z * 2, row]"): (
        [[[0, 2], [6, 8], [8, 10]], [3, 4]],
        [[2, 2], [3, 3], [2, 2]],
    ),
    program("z = x * 1 | row = z[1] | z[1] += 1 | row * 2"): ([6, 8], [[0, 0], [2, 2], [0, 0]]),
    program("z = torch.zeros(3, 2) | for i in range(3): z[i] += x[i] * i; z[i, :1] *= 2 | z"): (
        [[0, 0], [4, 3], [16, 10]],
        [[0, 0], [2, 1], [4, 2]],
    ),
    program("z = x * 1 | for i in range(2): z[i + 1] += z[i] | z"): (
        [[0, 1], [2, 4], [6, 9]],
        [[3, 3], [2, 2], [1, 1]],
    ),
    program("z = x * 1 | z[0][1] += 3 | z.T[0] += 3 | z.unsqueeze(0)[0, 1] += 3 | z"): (
        [[3, 4], [8, 6], [7, 5]],
        [[1, 1], [1, 1], [1, 1]],
    ),
    program("z = x * 1 | flat = z.view(-1) | flat[3] += 3 | z[0] = 7 | [z, flat * 1]"): (
        [[[7, 7], [2, 6], [4, 5]], [7, 7, 2, 6, 4, 5]],
        [[0, 0], [2, 2], [2, 2]],
    ),
    in_a_decorated_function: ([[2, 4], [6, 8], [10, 12]], None),
    diagonal: ([[1, 1], [2, 4]], [[1, 1], [1, 1], [0, 0]]),
    pieces: ([[3, 3], [11, 7], [19, 11]], None),
    program("z = x.sum(1) | parts = z.unfold(0, 2, 1) | z[1] = 0 | parts * 1"): (
        [[1, 0], [0, 9]],
        [[1, 1], [0, 0], [1, 1]],
    ),
    program("z = x * 1 | z[x[0].argmax()] += 1 | z"): ([[0, 1], [3, 4], [4, 5]], [[1, 1], [1, 1], [1, 1]]),
    copies_stay: (
        [[[0, 1], [2, 3], [4, 5]], [[4, 5], [2, 3], [0, 1]], [[0, 1], [2, 3], [4, 5]], [[0, 1], [2, 3], [4, 5]]],
        [[4, 4], [4, 4], [4, 4]],
    ),
    program("total = torch.tensor(0.0) | for row in x: total += row.sum() | total"): (15, [[1, 1], [1, 1], [1, 1]]),
    program("z = x * 1 | y = z * z | z[0] += 1 | y + z"): ([[1, 3], [6, 12], [20, 30]], None),
    program("z = x * 3 | with torch.no_grad(): z.mul_(2); z[0] = 5.0 | z * 1"): (
        [[5, 5], [12, 18], [24, 30]],
        [[3, 3], [3, 3], [3, 3]],
    ),
    of_another_dtype: ([[2, 3], [3, 4], [5, 6]], [[1, 1], [1, 1], [1, 1]]),
}
RUNS = {
    "jit": static.jit,
    "converted": lambda f: static.jit(f, convert=True),
    **{backend: functools.partial(static.jit, backend=backend) for backend in BACKENDS},
}


def as_lists(result):
    return [np.asarray(r).tolist() for r in result] if isinstance(result, list) else np.asarray(result).tolist()


def total(f):
    def loss(x):
        results = f(x)
        return sum(r.sum() for r in results) if isinstance(results, list) else results.sum()

    return loss


@together("f,run", [(f, run) for f in PROGRAMS for run in RUNS])
def test_a_graph_gives_pytorchs_values(f, run):
    x = torch.tensor(X.copy())
    assert as_lists(RUNS[run](f)(x)) == PROGRAMS[f][0]
    assert x.tolist() == X.tolist()


def test_an_iterator_that_a_branch_makes_gives_its_first_item():
    module = torch.nn.Linear(2, 2)

    def f(x):
        if x.sum() > 0:
            x = x + next(module.parameters()).detach().sum() + next(iter([1, 2]))
        return x

    for sign in (1, -1):
        x = torch.tensor(sign * X)
        np.testing.assert_allclose(static.jit(f, convert=True)(x), f(x).numpy())


def test_an_empty_tensor_that_a_graph_makes_takes_another_size():
    def f(x):
        return x.new().resize_((x.size(0), 1)).fill_(3).expand_as(x) * x

    for convert in (False, True):
        assert static.jit(f, convert=convert)(torch.tensor(X)).tolist() == f(torch.tensor(X)).tolist()
        with pytest.raises(GraphError, match="a value of a graph has no memory that grows"):
            static.jit(lambda x: (x * 1).resize_(2, 2), convert=convert)(torch.tensor(X))


@torch.no_grad()
def scale(t):
    if t.sum() > 0:
        t *= 2
    else:
        t -= 1


def test_control_flow_in_a_decorated_function_is_converted():
    class Counter:
        @torch.no_grad()
        def note(self, held):
            held["count"] += 1

    def f(x):
        t, held = x * 1, {"count": 0}
        scale(t)
        if x.max() > 4:
            Counter().note(held)
        return t + held["count"]

    for sign in (1, -1):
        x = torch.tensor(sign * X)
        assert static.jit(f, convert=True)(x).tolist() == f(x).tolist()


@pytest.mark.parametrize("f", [f for f, (_, gradient) in PROGRAMS.items() if gradient is not None])
def test_a_graph_gives_pytorchs_gradients(f):
    _, gradient = static.value_and_grad(total(f))(torch.tensor(X))
    np.testing.assert_allclose(gradient, PROGRAMS[f][1])


def test_a_tensor_of_the_tape_gives_the_same_where_no_gradient_is_asked_for():
    for f, (values, _) in PROGRAMS.items():
        with torch.no_grad():
            assert as_lists(f(torch.tensor(X))) == values, f.__name__


def until_it_is_large(x):
    z = x * 1
    while z.sum() < 50:
        z[0] += 1
    return z


def in_a_branch(x):
    z = x * 1
    if x.sum() > 0:
        z[0] += 1
    else:
        z[1] *= 2
    return z


def test_a_part_is_changed_in_a_loop_and_a_branch_of_the_graph():
    for f, first in ((until_it_is_large, [18, 19]), (in_a_branch, [1, 2])):
        assert static.jit(f, convert=True)(torch.tensor(X)).tolist() == [first, [2, 3], [4, 5]]


VIEWS = ("z[0]", "z[1:]", "z[0][1]", "z.detach()", "z.data", "z.data[0]", "z.view(-1)", "z.t()", "x.data", "x[0]")
STRETCHES = (
    "if c > 0: |     {}.mul_(2)",
    "if c > 0: |     if c < 5: |         {}.mul_(2)",
    "if c > 0: |     z = z * 1 | else: |     {}.mul_(2)",
    "i = 0 | while i < c: |     {}.mul_(2) |     i = i + 1",
)


@together("stretch,view", [(stretch, view) for stretch in STRETCHES for view in VIEWS])
def test_what_a_branch_or_a_loop_takes_a_view_of_has_the_change_or_is_not_read(stretch, view):
    f = program(f"z = x * 1 | {stretch.format(view)} | z + x", "x, c")
    for c in (2.0, -1.0):
        x = torch.tensor(X.copy())
        with pytest.raises(GraphError, match=r"under another name|an argument is changed in place"):
            static.jit(f, convert=True)(x, torch.tensor(c))
        assert x.tolist() == X.tolist()


OF_THEIR_OWN = (
    "z = x * 1 | if c > 0: |     z = z * 2 |     z[0].mul_(3) | z + 0",
    "z = x * 1 | if c > 0: |     w = z * 2 |     w[1].add_(1) |     w[:, 0].mul_(w[0].sum()) |     z = w | z + 0",
    "z = {'a': x * 1} | if c > 0: |     w = x * 2 |     w.t().mul_(3) |     z = {'a': w} | z['a'] + 0",
    "z = x * 1 | i = 0 | while i < c: |     w = z * 2 |     w[0].mul_(3) |     z = w |     i = i + 1 | z + 0",
    "z = x * 1 | z[0].mul_(3) | if c > 0: |     z = z * 2 | z + 0",
)


@together("row", OF_THEIR_OWN)
def test_a_branch_or_a_loop_changes_views_of_what_it_makes(row):
    f = program(row, "x, c")
    for c in (2.0, -1.0):
        args = torch.tensor(X), torch.tensor(c)
        np.testing.assert_array_equal(static.jit(f, convert=True)(*args), f(*args).numpy())


REFUSED = {
    program("x[0] += 1 | x * 2"): "an argument is changed in place",
    program("row = x[0] | row += 1 | x * 2"): "an argument is changed in place",
    program("z = (x * 1).t() | z.reshape(-1)[0] += 1 | z"): "under another name|only the layout tells",
    program("z = x * 1 | z[0].expand(2, 2).fill_(1) | z"): "under another name",
    program("z = x * 3 | z.data.mul_(2) | z * 1"): "under another name",
    program("z = torch.zeros(3, 2) | z.detach().add_(x) | z * 1"): "under another name",
    program("z = x.sum(1) | z.unfold(0, 2, 1).add_(1) | z * 1"): "under another name",
}


@together("f,convert", [(f, convert) for f in REFUSED for convert in (False, True)])
def test_what_a_graph_cannot_follow_is_refused(f, convert):
    x = torch.tensor(X.copy())
    with pytest.raises(GraphError, match=REFUSED[f]) as told:
        static.jit(f, convert=convert)(x)
    assert "; " in str(told.value)
    assert x.tolist() == X.tolist()


def test_a_part_of_ints_takes_no_floats():
    def f(x):
        z = torch.zeros(3, dtype=torch.int64)
        z[0] += x.sum()
        return z

    for convert in (False, True):
        with pytest.raises(DTypeError, match="in-place change of int64 values to float32"):
            static.jit(f, convert=convert)(torch.tensor(X))


ASKED_OF_MEMORY = [
    (lambda x: x.view(6), "value"),
    (lambda x: x.t().view(2, 3, 1), "value"),
    (lambda x: x.t().contiguous().view(6), "value"),
    (lambda x: x.t().reshape(6), "value"),
    (lambda x: x.t().view(6), "use reshape()"),
    (lambda x: torch.relu(x.t()).view(6), "use reshape()"),
    (lambda x: (x @ x.t()).t().view(9), "use reshape()"),
    (lambda x: x[:1].expand(2, 2).view(4), "use reshape()"),
    (lambda x: torch.nn.functional.layer_norm(x.t(), (3,)).view(6), "value"),
    (lambda x: x.t().repeat(2, 1).view(12), "value"),
    (lambda x: torch.tril(x.t()).view(6), "value"),
    (lambda x: x if x.contiguous().is_contiguous() else x.t(), "value"),
    (lambda x: x if x.is_contiguous() else x.t(), "call contiguous()"),
    (lambda x: x * x.stride()[0], "what the compiled function returns"),
    (lambda x: x.contiguous().as_strided((2, 3), (1, 1)), "value"),
    (lambda x: x.as_strided((2, 3), (1, 1)), "call contiguous()"),
    (lambda x: x.contiguous().as_strided((4, 2), (2, 1)), "take fewer"),
    (lambda x: x[None, None].contiguous(memory_format=torch.channels_last), "value"),
]
"""Functions of a matrix, and whether a trace gives the value that the tape gives, or refuses with this remedy."""


@together("f,answer", ASKED_OF_MEMORY)
def test_a_trace_answers_for_memory_or_refuses(f, answer):
    x = torch.tensor(X)
    if answer == "value":
        np.testing.assert_array_equal(static.jit(f)(x), f(x).numpy())
        slope = static.grad(lambda x: (f(x) ** 2).sum())(x)
        leaf = torch.tensor(X, requires_grad=True)
        (f(leaf) ** 2).sum().backward()
        np.testing.assert_array_equal(slope, leaf.grad.numpy())
        return
    with pytest.raises(GraphError) as caught:
        static.jit(f)(x)
    assert answer in str(caught.value)
