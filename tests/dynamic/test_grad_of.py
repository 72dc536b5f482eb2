"""Backward from several roots, `grad_of`, `inference_mode`, copies and the tape as a list: PyTorch's meanings."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import weakref
from typing import Any

import networkx as nx
import numpy as np
import pytest

import dynamic
from graphs.errors import NotDifferentiableError, ShapeError


def leaf(*values: float) -> dynamic.Tensor:
    return dynamic.tensor([float(v) for v in values], requires_grad=True)


# backward from several roots ----------------------------------------------------------------------------------------


def test_gradients_of_several_roots_add_up() -> None:
    a, b = leaf(1, 2), leaf(3, 4)
    dynamic.backward([a * 2, (a * b).sum()], [dynamic.tensor([1.0, 10.0]), None])
    assert a.grad.tolist() == [2 + 3, 20 + 4]
    assert b.grad.tolist() == [1, 2]


def test_a_root_that_another_is_made_of() -> None:
    x = leaf(2)
    y = x * x
    dynamic.backward([y, y * x], [dynamic.ones(1), dynamic.ones(1)])
    assert x.grad.tolist() == [4 + 12]


def test_the_same_root_twice() -> None:
    x = leaf(2)
    y = x * 3
    dynamic.backward([y, y], [dynamic.ones(1), dynamic.ones(1)])
    assert x.grad.tolist() == [6]


def test_backward_can_be_kept_to_some_inputs() -> None:
    a, b = leaf(1), leaf(2)
    h = a * b
    dynamic.backward((h * h).sum(), inputs=[a, h])
    assert a.grad.tolist() == [2 * 2 * 2]
    assert h.grad.tolist() == [4]
    assert b.grad is None


def test_roots_and_cotangents_are_as_many() -> None:
    with pytest.raises(ShapeError, match="1 cotangents for 2 outputs"):
        dynamic.backward([leaf(1), leaf(2)], [dynamic.ones(1)])
    with pytest.raises(NotDifferentiableError, match="only scalars have one gradient"):
        dynamic.backward([leaf(1, 2) * 2])


# grad_of ------------------------------------------------------------------------------------------------------------


def test_grad_of_leaves_every_grad_alone() -> None:
    a, b = leaf(1, 2), leaf(3, 4)
    h = a * b
    ga, gh = dynamic.grad_of([h.sum(), h * 2], [a, h], [None, dynamic.ones(2)])
    assert ga.tolist() == [9, 12]
    assert gh.tolist() == [3, 3]
    assert a.grad is b.grad is h.grad is None


def test_an_input_that_was_not_used() -> None:
    a, b = leaf(1), leaf(2)
    with pytest.raises(NotDifferentiableError, match=r"do not depend on input 1 .*allow_unused=True"):
        dynamic.grad_of((a * 2).sum(), [a, b])
    assert dynamic.grad_of((a * 2).sum(), [a, b], allow_unused=True)[1] is None
    assert dynamic.grad_of((a * 2).sum(), [a, b], materialize_grads=True)[1].tolist() == [0]
    with pytest.raises(NotDifferentiableError, match="input 0 requires no gradient"):
        dynamic.grad_of((a * 2).sum(), [dynamic.ones(1)])
    (again,) = dynamic.grad_of((a * 2).sum(), [b], materialize_grads=True, create_graph=True)
    assert dynamic.grad_of(again, [a], materialize_grads=True)[0].tolist() == [0]


def test_derivatives_that_are_to_be_differentiated_are_recorded_without_a_tape_around_them() -> None:
    x = leaf(1, 2)
    F = dynamic.autograd.functional
    with dynamic.no_grad():
        made = F.vjp(lambda a: (a**3).sum(), x, create_graph=True)[1], F.jacobian(lambda a: a**3, x, create_graph=True)
        plain = F.vjp(lambda a: (a**3).sum(), x)[1]
    assert [value.requires_grad for value in (*made, plain)] == [True, True, False]
    assert dynamic.grad_of(made[0].sum(), x)[0].tolist() == [6, 12]


def test_gradients_of_gradients() -> None:
    x = leaf(2, 3)
    (first,) = dynamic.grad_of((x * x * x).sum(), x, create_graph=True)
    (second,) = dynamic.grad_of(first.sum(), x)
    assert first.tolist() == [12, 27]
    assert second.tolist() == [12, 18]
    assert first.requires_grad
    assert not second.requires_grad


def test_the_graph_is_freed_unless_it_is_retained() -> None:
    x = leaf(2)
    y = (x * x).sum()
    for _ in range(2):
        assert dynamic.grad_of(y, x, retain_graph=True)[0].tolist() == [4]
    dynamic.grad_of(y, x)
    with pytest.raises(NotDifferentiableError, match="multiply: backward a second time"):
        dynamic.grad_of(y, x)


def test_a_path_that_was_freed_is_not_passed_over() -> None:
    x = leaf(2)
    h = x * x
    h.sum().backward()
    with pytest.raises(NotDifferentiableError, match="multiply: backward a second time"):
        dynamic.grad_of((h + x).sum(), x)


def test_gradients_share_no_memory() -> None:
    a, b = leaf(1, 2), leaf(3, 4)
    ga, gb = dynamic.grad_of((a + b).sum(), [a, b])
    assert not np.shares_memory(ga.numpy(), gb.numpy())


def test_a_leaf_that_nobody_holds_is_no_obstacle() -> None:
    x = leaf(1, 2)
    y = x * leaf(3, 4)
    y.sum().backward()
    assert x.grad.tolist() == [3, 4]


def test_hooks_of_a_leaf_run_for_grad_of() -> None:
    x = leaf(1)
    x.register_hook(lambda gradient: gradient * 10)
    assert dynamic.grad_of((x * 2).sum(), x)[0].tolist() == [20]


def test_new_data_for_a_leaf_leaves_what_was_recorded() -> None:
    x = leaf(1, 2)
    y = (x * 2).sum()
    x.data = np.ones(3, np.float32)
    y.backward()
    assert x.grad.tolist() == [2, 2]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


# inference_mode -----------------------------------------------------------------------------------------------------


def test_inference_mode_records_nothing_whatever_is_asked_inside() -> None:
    x = leaf(1)
    with dynamic.inference_mode():
        assert dynamic.is_inference_mode_enabled()
        with dynamic.enable_grad():
            assert not (x * 2).requires_grad
        with dynamic.inference_mode(False):
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert not dynamic.is_inference_mode_enabled()
    assert (x * 2).requires_grad


def test_modes_are_decorators_and_end_with_an_error() -> None:
    x = leaf(1)

    @dynamic.inference_mode()
    def depth(n: int) -> Any:
        assert not dynamic.is_grad_enabled()
        return depth(n - 1) if n else x * 2

    assert not depth(3).requires_grad
    with pytest.raises(ZeroDivisionError), dynamic.no_grad():
        1 / 0  # noqa: B018
    assert dynamic.is_grad_enabled()
    assert (x * 2).requires_grad


def test_modes_are_decorators_without_brackets() -> None:
    x = leaf(1)

    @dynamic.no_grad
    def doubled() -> Any:
        """Twice x."""
        return x * 2

    @dynamic.enable_grad
    def recorded() -> Any:
        return x * 2

    @dynamic.inference_mode
    def inferred() -> Any:
        return dynamic.is_inference_mode_enabled()

    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Twice x.")
    assert not doubled().requires_grad
    with dynamic.no_grad():
        assert recorded().requires_grad
    assert inferred()
    assert not dynamic.is_inference_mode_enabled()
    assert (x * 2).requires_grad


# Copies -------------------------------------------------------------------------------------------------------------


def test_pickle_keeps_data_and_whether_a_gradient_is_required() -> None:
    x = leaf(1, 2)
    x.grad = dynamic.ones(2)
    for tensor in (x, x * 2, dynamic.ones(2)):
        again = pickle.loads(pickle.dumps(tensor))
        assert again.tolist() == tensor.tolist()
        assert again.requires_grad == tensor.requires_grad
        assert again.is_leaf
        assert again.grad is None


def test_a_copy_shares_memory_and_a_deep_copy_does_not() -> None:
    x = leaf(1, 2)
    x.grad = dynamic.ones(2)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert np.shares_memory(shallow._data, x._data)
    assert not np.shares_memory(deep._data, x._data)
    assert shallow.requires_grad
    assert deep.requires_grad
    assert deep.grad.tolist() == [1, 1]
    assert not np.shares_memory(deep.grad._data, x.grad._data)
    assert copy.copy(x * 2).is_leaf


def test_a_deep_copy_of_a_result_is_refused_with_the_remedy() -> None:
    with pytest.raises(NotDifferentiableError, match=r"deepcopy of a tensor that an op has made .*detach\(\)"):
        copy.deepcopy([leaf(1) * 2])
    a, b = copy.deepcopy([x := leaf(1), x])
    assert a is b


def test_a_weak_reference_ends_with_the_tensor_and_its_tape() -> None:
    x = leaf(1)
    y = x * 2
    tensor, entry = weakref.ref(y), weakref.ref(y.grad_fn)
    assert tensor() is y
    del y
    assert tensor() is entry() is None


# The tape as a list -------------------------------------------------------------------------------------------------


def example() -> dynamic.Tensor:
    x, w = leaf(1, 2), dynamic.ones(2, 2, requires_grad=True)
    return (dynamic.tanh(w @ x) * 2.0 + x).sum()


def test_a_tape_prints_as_a_list() -> None:
    tape = dynamic.tape_of(example())
    head, *lines = repr(tape).splitlines()
    assert head.startswith("tape of f32[]: 5 ops, ")
    assert lines == [
        "  %0: f32[2,2] leaf",
        "  %1: f32[2] leaf",
        "  %2: f32[2] = matmul(%0, %1), saves f32[2], f32[2,2]",
        "  %3: f32[2] = tanh(%2), saves f32[2]",
        "  %4: f32[2] = multiply(%3, _), saves f32[]",
        "  %5: f32[2] = add(%4, %1)",
        "  %6: f32[] = sum(%5, axis=(0,), keepdims=False)",
    ]
    assert [entry.op.name for entry in tape] == ["matmul", "tanh", "multiply", "add", "sum"]
    assert len(tape) == tape.stats.nodes


def test_what_backward_freed_is_shown_as_freed() -> None:
    y = example()
    y.backward()
    assert repr(dynamic.tape_of(y)).splitlines()[1:] == [
        "  %0: f32[2] leaf",
        "  %1: f32[2] = tanh(...), freed",
        "  %2: f32[2] = multiply(%1, _), saves f32[]",
        "  %3: f32[2] = add(%2, %0)",
        "  %4: f32[] = sum(%3, axis=(0,), keepdims=False)",
    ]
    assert repr(dynamic.tape_of(leaf(1))).splitlines()[1:] == ["  %0: f32[1] leaf"]
    assert len(dynamic.tape_of(dynamic.ones(1))) == 0


def test_a_tape_as_a_networkx_graph() -> None:
    graph = dynamic.tape_of(example()).to_networkx()
    assert nx.is_directed_acyclic_graph(graph)
    assert [graph.nodes[n]["op"] for n in range(7)] == ["leaf", "leaf", "matmul", "tanh", "multiply", "add", "sum"]
    edges = [(0, 2, 0), (1, 2, 1), (1, 5, 1), (2, 3, 0), (3, 4, 0), (4, 5, 0), (5, 6, 0)]
    assert sorted(graph.edges(data="position")) == edges
    assert graph.nodes[2]["saved_bytes"] == 8 + 16


def test_a_tape_is_drawn(tmp_path: Any) -> None:
    drawing = dynamic.tape_of(example()).draw(tmp_path / "tape.png")
    assert (tmp_path / "tape.png").stat().st_size > 1000
    assert {(item.label, item.detail) for item in drawing.whole.items} >= {("tanh", "f32[2]"), ("leaf", "f32[2,2]")}


def test_printing_a_tape_loads_no_plotting() -> None:
    code = (
        "import sys, dynamic; x = dynamic.ones(2, requires_grad=True); repr(dynamic.tape_of(x.sum()));"
        "sys.exit('matplotlib' in sys.modules or 'networkx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_next_functions_lead_to_the_leaves() -> None:
    x = leaf(1)
    (end,) = [e for e, _ in (x * 2).grad_fn.next_functions if e is not None]
    assert repr(end).startswith("<AccumulateGrad object at 0x")
    assert end.next_functions == ()
    assert x.grad_fn is None


# One element ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_a_tensor_of_one_element_needs_no_cotangent(shape: tuple[int, ...]) -> None:
    """As in PyTorch, whatever its number of axes."""
    for create_graph in (False, True):
        x = dynamic.tensor(np.full(shape, 3.0), requires_grad=True)
        (x * x * 2).backward(create_graph=create_graph)
        assert x.grad is not None
        assert (x.grad.shape, x.grad.item(), x.grad.requires_grad) == (shape, 12.0, create_graph)
    x = dynamic.tensor(np.full(shape, 3.0, np.float32), requires_grad=True)
    (gradient,) = dynamic.grad_of(x * x, x)
    assert (gradient.shape, gradient.dtype, gradient.item()) == (shape, np.float32, 6.0)
    dynamic.backward([x * 2, x * 3])
    assert x.grad.item() == 5.0
    x.backward()  # the leaf itself
    assert x.grad.item() == 6.0


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 2)])
def test_a_tensor_of_more_or_fewer_needs_one(shape: tuple[int, ...]) -> None:
    x = dynamic.tensor(np.ones(shape), requires_grad=True)
    with pytest.raises(NotDifferentiableError) as told:
        (x * 2).backward()
    assert f"gradient of an output of shape {shape}" in str(told.value)
    assert "reduce it (sum, mean), or give the cotangent" in str(told.value)
