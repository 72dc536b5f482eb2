"""The dynamic engine: leaves, accumulation, hooks, graphs kept, freed and differentiated again."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import graphs
from graphs.errors import DTypeError, GraphError, NotDifferentiableError
from tests.helpers.leaves import leaf, shares
from tests.helpers.together import together

# Leaves and what follows from them --------------------------------------------------------------------------


def test_leaves_require_what_they_were_told_and_results_what_their_inputs_do():
    x, c = leaf(1, 2), dynamic.tensor([3.0, 4.0])
    assert (x.requires_grad, x.is_leaf, x.grad_fn) == (True, True, None)
    assert (c.requires_grad, (c * 2).requires_grad) == (False, False)
    y = x * c
    assert (y.requires_grad, y.is_leaf) == (True, False)
    assert y.detach().is_leaf
    assert not y.detach().requires_grad
    assert not (y > 1).requires_grad


def test_data_keeps_its_meaning():
    x = dynamic.tensor([[1.5, 2.0], [3.0, 4.0]])
    assert (x.dtype, x.shape, x.ndim, x.numel(), len(x)) == (np.float32, (2, 2), 2, 4, 2)
    assert x.tolist() == [[1.5, 2.0], [3.0, 4.0]]
    assert x[0, 0].item() == 1.5
    assert type(x.sum().item()) is float
    assert dynamic.tensor(np.ones(2)).dtype == np.float64
    assert dynamic.tensor([1, 2]).dtype == np.int64
    assert [row.tolist() for row in x] == x.tolist()
    assert (float(x.max()), int(x.max()), bool(x.min() > 0)) == (4.0, 4, True)


def test_tensor_copies_and_from_numpy_shares():
    array = np.ones(2, np.float32)
    copied, shared = dynamic.tensor(array), dynamic.from_numpy(array)
    array += 1
    assert copied.tolist() == [1, 1]
    assert shared.tolist() == [2, 2]
    assert shares(shared, shared.detach())


@pytest.mark.parametrize(
    ("broken", "error", "words"),
    [
        (lambda x: x.item(), GraphError, "item() of a tensor with 2 elements"),
        (bool, GraphError, "truth of a tensor with 2 elements"),
        (lambda x: x.numpy(), GraphError, "detach().numpy()"),
        (np.asarray, GraphError, "detach().numpy()"),
        (lambda x: (x * 2).requires_grad_(False), NotDifferentiableError, "only a leaf can stop"),
        (lambda x: (x * 2).backward(), NotDifferentiableError, "only scalars have one gradient"),
        (lambda x: (x * 2).backward(dynamic.ones(3)), NotDifferentiableError, "shape (3,), the output (2,)"),
        (lambda x: x.detach().sum().backward(), NotDifferentiableError, "requires_grad=True"),
        (lambda x: (x > 1).register_hook(print), NotDifferentiableError, "never called"),
        (lambda x: dynamic.tensor([1, 2], requires_grad=True), DTypeError, "floating point"),
        (lambda x: dynamic.tensor(["a"]), DTypeError, "bools, ints or floats"),
        (lambda x: x @ dynamic.ones(3), graphs.ShapeError, "matmul"),
    ],
)
def test_refusals_name_the_line_and_the_remedy(broken, error, words):
    with pytest.raises(error) as caught:
        broken(leaf(1, 2))
    assert words in str(caught.value)
    assert "test_engine.py:" in str(caught.value)


# Accumulation -----------------------------------------------------------------------------------------------


def test_gradients_accumulate_until_they_are_cleared():
    x = leaf(1, 2)
    for expected in ([2, 4], [4, 8], [6, 12]):
        (x * x).sum().backward()
        assert x.grad.tolist() == expected
    held = x.grad
    x.sum().backward()
    assert held is x.grad
    assert held.tolist() == [7, 13]
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_only_leaves_and_retained_tensors_get_a_gradient():
    x, c = leaf(1, 2), dynamic.tensor([3.0, 4.0])
    y, z = x * c, x + c
    y.retain_grad()
    y.retain_grad()
    (y * z).sum().backward()
    assert z.grad is None
    assert c.grad is None
    assert y.grad.tolist() == [4, 6]
    assert x.grad.tolist() == [3 * 4 + 3, 4 * 6 + 8]


def test_a_leaf_used_many_times_gets_the_sum():
    x = leaf(2)
    (x * x * x + x).sum().backward()
    assert x.grad.tolist() == [13]


def two_leaves(**options):
    x, y = leaf(1, 2), leaf(3, 4)
    (x + y).sum().backward(**options)
    return x.grad, y.grad


def seed_and_leaf(**options):
    x, seed = leaf(1, 2), dynamic.tensor([5.0, 6.0])
    (x + 0).backward(seed, **options)
    return seed, x.grad


def retained_and_leaf(**options):
    x = leaf(1, 2)
    y = x + 0
    y.retain_grad()
    y.backward(dynamic.ones(2), **options)
    return y.grad, x.grad


def seen_by_hook_and_leaf(**options):
    x, seen = leaf(1, 2), []
    y = x + 0
    y.register_hook(seen.append)
    x.register_hook(seen.append)
    y.backward(dynamic.ones(2), **options)
    return seen[0], seen[1], x.grad


def returned_by_hook_and_leaf(**options):
    x, mine = leaf(1, 2), dynamic.tensor([7.0, 8.0])
    x.register_hook(lambda g: mine)
    x.sum().backward(**options)
    return mine, x.grad


@pytest.mark.parametrize("options", [{}, {"create_graph": True}], ids=["plain", "create_graph"])
@pytest.mark.parametrize(
    "program", [two_leaves, seed_and_leaf, retained_and_leaf, seen_by_hook_and_leaf, returned_by_hook_and_leaf]
)
def test_a_gradient_shares_its_memory_with_nobody(program, options):
    *others, last = program(**options)
    assert not any(shares(other, last) for other in others)


def test_gradients_are_writeable_and_whole():
    x = dynamic.zeros(3, 4, requires_grad=True)
    x.sum().backward()
    assert x.grad.numpy().flags.writeable
    assert x.grad.numpy().base is None


# Hooks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_leaf", [True, False])
def test_hooks_see_replace_and_go_away(on_leaf):
    x, seen = leaf(1, 2), []

    def run():
        x.grad = None
        y = x * 3
        target = x if on_leaf else y
        handles = [target.register_hook(lambda g: seen.append(g.tolist())), target.register_hook(lambda g: g * 10)]
        y.sum().backward()
        for handle in handles:
            handle.remove()
            handle.remove()
        return x.grad.tolist()

    assert run() == [30, 30]
    assert seen == ([[3, 3]] if on_leaf else [[1, 1]])
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert len(seen) == 1


def test_hooks_run_in_order_and_once_on_the_sum():
    x, calls = leaf(1), []
    x.register_hook(lambda g: calls.append(g.item()))
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 2)
    (x * 2 + x * 3).sum().backward()
    assert calls == [5]
    assert x.grad.tolist() == [12]


def test_what_is_retained_is_the_gradient_after_every_hook():
    x = leaf(1)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [5]
    assert x.grad.tolist() == [10]


@pytest.mark.parametrize("given", [lambda g: g.sum(), lambda g: [1.0, 2.0], lambda g: g.astype("float64")])
def test_a_hook_that_changes_the_kind_of_gradient_is_refused(given):
    x = leaf(1, 2)
    x.register_hook(given)
    with pytest.raises(NotDifferentiableError, match=r"a hook returned .* for a gradient f32\[2\]"):
        x.sum().backward()


# Graphs kept, freed and differentiated again ------------------------------------------------------------------


def test_a_second_backward_needs_the_graph():
    x = leaf(3)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12]
    with pytest.raises(NotDifferentiableError, match=r"second time.*retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [12]


FREES_NOTHING = {
    "plus a number": lambda x: x + 1,
    "negative": lambda x: -x,
    "sum": lambda x: x.sum(),
    "element": lambda x: x[0],
    "mean of a view": lambda x: x.view(2, 1).mean(),
    "by a number": lambda x: x * 2 / 3,
    "by an array of the caller's": lambda x: graphs.multiply(x, np.array([2.0, 3.0])),
    "alpha": lambda x: dynamic.add(x, x, alpha=2),
    "lerp": lambda x: dynamic.lerp(x, x + 1, 0.3),
    "sign": dynamic.sign,
    "fmod": lambda x: dynamic.fmod(x, 3),
    "remainder": lambda x: x % 3,
    "diag": dynamic.diag,
    "diag_embed": dynamic.diag_embed,
    "tril": lambda x: dynamic.tril(x.view(1, 2)),
    "triu": lambda x: dynamic.triu(x.view(1, 2), 1),
    "matmul": lambda x: graphs.matmul(x, np.array([2.0, 3.0])),
}


@together("function", FREES_NOTHING.values(), FREES_NOTHING)
def test_a_graph_that_has_saved_nothing_of_a_tensor_needs_not_be_retained(function):
    x = leaf(3, 4)
    y = function(x).sum()
    y.backward()
    once = x.grad.numpy().copy()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * once)


SAVES = {
    "another tensor": lambda x: x * dynamic.ones(2),
    "a mask": lambda x: dynamic.where(dynamic.tensor([True, False]), x, 0),
    "the input": lambda x: x**2,
    "the output": dynamic.exp,
    "the weight": lambda x: dynamic.lerp(x, x, dynamic.tensor(0.3)),
    "what dropout has drawn": dynamic.nn.functional.dropout,
    "a matrix": lambda x: dynamic.ones(2, 2) @ x,
}


@together("function", SAVES.values(), SAVES)
def test_what_an_op_has_saved_of_tensors_is_freed(function):
    y = function(leaf(3, 4)).sum()
    y.backward()
    with pytest.raises(NotDifferentiableError, match="backward a second time"):
        y.backward()


@pytest.mark.parametrize("saves", [False, True])
def test_a_function_of_ones_own_is_freed_where_it_has_saved_something(saves):
    class Double(dynamic.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(*[x] * saves)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(3)
    y = Double.apply(x).sum()
    y.backward()
    if saves:
        with pytest.raises(NotDifferentiableError, match="function: backward a second time"):
            y.backward()
    else:
        y.backward()
        assert x.grad.tolist() == [4]


def test_a_shared_part_that_was_freed_is_named():
    x = leaf(3)
    shared = x * x
    (shared * 2).sum().backward()
    with pytest.raises(NotDifferentiableError, match="multiply: backward a second time"):
        (shared * 3).sum().backward()


def test_create_graph_gives_gradients_that_are_differentiated_again():
    x = leaf(2, 3)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    assert first.tolist() == [12, 27]
    assert first.requires_grad
    x.grad = None
    first.sum().backward()
    assert x.grad.tolist() == [12, 18]


def test_a_gradient_penalty_trains_through_the_gradient():
    w, x = leaf(0.5), leaf(2)
    (w * x * x).sum().backward(create_graph=True)
    slope = x.grad  # 2 w x
    w.grad = None
    (slope * slope).sum().backward()
    assert w.grad.tolist() == [8 * 0.5 * 4]


def test_a_seed_weighs_the_outputs():
    x = leaf(1, 2, 3)
    (x * x).backward(dynamic.tensor([1.0, 0.0, -1.0]))
    assert x.grad.tolist() == [2, 0, -6]
    (x * 1).backward([1.0, 1.0, 1.0])
    assert x.grad.tolist() == [3, 1, -5]
