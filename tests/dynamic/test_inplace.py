"""Changes in place: what they mean for gradients, and which are refused."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
from dynamic.tensor import _PASSING
from graphs.errors import DTypeError, GraphError, InplaceError, ShapeError
from tests.helpers.together import together


def leaf(*values: float) -> dynamic.Tensor:
    return dynamic.tensor([float(v) for v in values], requires_grad=True)


def here() -> str:
    """This line of the test, as errors name it."""
    return f"test_inplace.py:{inspect.currentframe().f_back.f_lineno}"


# What they mean ---------------------------------------------------------------------------------------------


CHANGES = {
    "+=": (lambda y: y.__iadd__(3), lambda y: y + 3),
    "-=": (lambda y: y.__isub__(3), lambda y: y - 3),
    "*=": (lambda y: y.__imul__(3), lambda y: y * 3),
    "/=": (lambda y: y.__itruediv__(4), lambda y: y / 4),
    "add_": (lambda y: y.add_(2, alpha=5), lambda y: y + 10),
    "sub_": (lambda y: y.sub_(2, alpha=5), lambda y: y - 10),
    "mul_": (lambda y: y.mul_(7), lambda y: y * 7),
    "div_": (lambda y: y.div_(8), lambda y: y / 8),
    "zero_": (lambda y: y.zero_(), lambda y: y * 0),
    "fill_": (lambda y: y.fill_(9), lambda y: y * 0 + 9),
    "copy_": (lambda y: y.copy_(dynamic.tensor([5.0])), lambda y: y * 0 + 5),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_place_is_the_same_computation(name):
    in_place, out_of_place = CHANGES[name]
    results = []
    for change in (in_place, out_of_place):
        x = leaf(1, 2, 3)
        y = x * 2
        z = change(y)
        (z * z).sum().backward()
        results.append((z.tolist(), x.grad.tolist()))
        assert (z is y) == (change is in_place)
    assert results[0] == results[1]


def test_memory_stays_where_it_was():
    y = leaf(1, 2) * 2
    memory, name = y._data, id(y)
    y += 1
    y[0] = 5.0
    y.copy_(dynamic.ones(2))
    assert y._data is memory
    assert id(y) == name


def test_setitem_gives_the_gradient_to_what_was_written():
    x, w = leaf(1, 2, 3), leaf(10, 20)
    y = x * 2
    y[1:] = w * 3
    (y * y).sum().backward()
    assert y.tolist() == [2, 30, 60]
    assert x.grad.tolist() == [8, 0, 0]
    assert w.grad.tolist() == [2 * 30 * 3, 2 * 60 * 3]


def test_setitem_broadcasts_and_sums_the_gradient_back():
    x, w = dynamic.zeros(2, 3, requires_grad=True), leaf(5)
    y = x * 1
    y[:, 1] = w
    y.sum().backward()
    assert w.grad.tolist() == [2]
    assert x.grad.tolist() == [[1, 0, 1], [1, 0, 1]]


def test_a_plain_tensor_that_takes_a_tracked_value_is_tracked():
    x, y = leaf(3), dynamic.zeros(2)
    y[0:1] = x * 2
    assert y.requires_grad
    assert not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [2]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-3, 3)), max_size=8))
def test_a_series_of_writes_equals_the_same_series_by_where(writes):
    """Random `y[i] = y[j] * k` against one-hot arithmetic out of place."""
    x, expected_x = leaf(1, 2, 3, 4), leaf(1, 2, 3, 4)
    y, z = x * 1, expected_x * 1
    for i, j, k in writes:
        y[i] = y[j].clone() * float(k)
        at = dynamic.tensor(np.eye(4, dtype=np.float32)[i])
        z = z * (1 - at) + z[j] * float(k) * at
    (y * y).sum().backward()
    (z * z).sum().backward()
    assert y.tolist() == z.tolist()
    assert x.grad.tolist() == expected_x.grad.tolist()


def test_broadcasting_into_place_and_dtypes_follow_the_target():
    y = dynamic.ones(2, 2)
    y += dynamic.tensor([1.0, 2.0])
    assert y.tolist() == [[2, 3], [2, 3]]
    y += dynamic.ones(2, 2, dtype="float64")
    assert y.dtype == np.float32
    x = leaf(1, 2)
    z = x * 1
    z += dynamic.ones(2, dtype="float64")
    z.sum().backward()
    assert (z.dtype, x.grad.dtype, x.grad.tolist()) == (np.float32, np.float32, [1, 1])


@pytest.mark.parametrize(
    ("target", "value", "error", "words"),
    [
        (dynamic.ones(2), dynamic.ones(3, 2), ShapeError, "shape (2,) to (3, 2)"),
        (dynamic.tensor([1, 2]), 0.5, DTypeError, "int64 values to float32"),
        (dynamic.tensor([True]), 2, DTypeError, "bool values to int64"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(target, value, error, words):
    before = target.tolist()
    with pytest.raises(error) as caught:
        target += value
    assert words in str(caught.value)
    assert target.tolist() == before


def test_read_only_memory_is_refused():
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    with pytest.raises(InplaceError, match="read-only"):
        dynamic.from_numpy(array).add_(1)


# Leaves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [lambda x: x.add_(1), lambda x: x.zero_(), lambda x: x.__setitem__(0, 1.0)])
def test_a_leaf_that_requires_a_gradient_changes_only_under_no_grad(change):
    x = leaf(1, 2)
    with pytest.raises(InplaceError, match=r"leaf that requires a gradient \(test_inplace.py:\d+\).*no_grad"):
        change(x)
    assert x.tolist() == [1, 2]
    with dynamic.no_grad():
        change(x)
    assert x.is_leaf
    assert x.requires_grad
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_view_of_a_leaf_is_refused_too():
    x = leaf(1, 2)
    view = x[:1]
    with pytest.raises(InplaceError, match="view"):
        view *= 2
    assert x.tolist() == [1, 2]


# Stale values -----------------------------------------------------------------------------------------------


def saved_by_a_product(y):
    return y * y


def saved_as_an_output(y):
    return dynamic.tanh(y)


@pytest.mark.parametrize("through", ["itself", "detached", "view", "numpy"])
def test_a_stale_read_names_the_op_and_the_line_of_the_change(through):
    x = leaf(1, 2)
    y = x * 2
    z = saved_by_a_product(y).sum()
    if through == "itself":
        y += 1; line = here()  # noqa: E702  (one line, so that it is the one named)  # fmt: skip
    elif through == "detached":
        d = y.detach(); d += 1; line = here()  # noqa: E702  # fmt: skip
    elif through == "view":
        v = y.detach()[:1]; v[0] = 5.0; line = here()  # noqa: E702  # fmt: skip
    else:
        dynamic.from_numpy(y.detach().numpy()).add_(1); line = here()  # noqa: E702  # fmt: skip
    with pytest.raises(InplaceError) as caught:
        z.backward()
    message = str(caught.value)
    assert message.startswith("multiply: ")
    assert line in message
    assert "clone()" in message
    assert x.grad is None


def test_an_output_that_backward_reads_is_watched_too():
    x = leaf(1, 2)
    y = saved_as_an_output(x)
    z = y.sum()
    with dynamic.no_grad():
        y += 1
    with pytest.raises(InplaceError, match="tanh"):
        z.backward()


def test_an_op_that_overwrites_what_it_saved_itself_is_refused():
    y = leaf(1, 2) * 3
    y *= y
    with pytest.raises(InplaceError, match="multiply"):
        y.sum().backward()


def test_a_parameter_changed_between_forward_and_backward_is_refused():
    w, x = leaf(2), leaf(3)
    loss = (w * x).sum()
    with dynamic.no_grad():
        w -= 1
    with pytest.raises(InplaceError, match="multiply"):
        loss.backward()


def test_a_change_of_what_nobody_saved_is_fine():
    x = leaf(1, 2)
    y = x + 1
    z = y + 2  # the gradient of a sum reads nothing
    y *= 10
    (z + y).sum().backward()
    assert x.grad.tolist() == [11, 11]


def test_a_change_before_the_read_is_fine():
    x = leaf(1, 2)
    y = x * 1
    y += 1
    z = y * y
    z.sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_a_clone_keeps_the_value_that_was_saved():
    x = leaf(1, 2)
    y = x * 2
    z = y.clone() * y.clone()
    y += 100
    z.sum().backward()
    assert x.grad.tolist() == [8, 16]


def test_other_memory_at_the_same_address_is_no_stale_value():
    for _ in range(200):
        scratch = dynamic.ones(3)
        scratch += 1
        del scratch
        x = leaf(1, 2, 3)
        (x * x).sum().backward()
        assert x.grad.tolist() == [2, 4, 6]


def test_a_gradient_that_was_used_may_not_grow_unseen():
    x, w = leaf(1), leaf(2)
    (x * x).sum().backward()
    loss = (w * x.grad).sum()
    (x * x).sum().backward()  # accumulates into the memory that the product saved
    with pytest.raises(InplaceError, match="multiply"):
        loss.backward()


# Views ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view",
    [lambda y: y[0], lambda y: y[1:], lambda y: y.reshape(2, 1), lambda y: y.T],
    ids=["element", "slice", "reshape", "transpose"],
)
def test_views_share_memory(view):
    y = dynamic.tensor([1.0, 2.0])
    v = view(y)
    assert np.shares_memory(v.numpy(), y.numpy())
    y += 10
    assert min(np.ravel(v.tolist())) >= 11


@pytest.mark.parametrize("use", [lambda v: v * 2, dynamic.Tensor.backward, dynamic.sum])
def test_a_view_whose_base_got_another_history_is_refused(use):
    x = leaf(1, 2)
    y = x * 3
    v = y[0]
    y *= 2; line = here()  # noqa: E702  # fmt: skip
    with pytest.raises(InplaceError, match="take the view again") as caught:
        use(v)
    assert line in str(caught.value)
    y[0].backward()
    assert x.grad.tolist() == [6, 0]


def test_a_change_under_no_grad_leaves_histories_as_they_are():
    x = leaf(1, 2)
    y = x * 3
    v = y[0]
    with dynamic.no_grad():
        y += 100
    assert v.item() == 103
    (v * 2 + y.sum()).backward()
    assert x.grad.tolist() == [9, 3]


def test_errors_are_of_one_family():
    assert issubclass(InplaceError, GraphError)
    assert issubclass(InplaceError, RuntimeError)  # what PyTorch raises


def test_a_transform_differentiates_in_its_argument_as_it_was_given() -> None:
    def changed(x: dynamic.Tensor) -> dynamic.Tensor:
        x *= 2
        return (x * x).sum()

    x = dynamic.tensor([1.0, 3.0], requires_grad=True)
    value, gradient = dynamic.value_and_grad(changed)(x)
    assert value.item() == 40
    assert gradient.tolist() == [8, 24]  # of 4 x^2
    assert x.tolist() == [1, 3]


def _twice(y, x):
    y[..., -1] += 1
    y[..., -1] *= 3


def _row_by_row(y, x):
    y[0, :] += y[1, :]


def _from_before(y, x):
    before = y[:, 1:] - y[:, :-1]
    y[:, 0] -= 2
    y[:, 1] /= before[:, 0]


def _filled(y, x):
    sums = dynamic.zeros(2, 2, dtype=dynamic.float64)
    sums[:, 0] += x[:, 1]
    sums[1] -= x[0]
    y[...] = sums


@pytest.mark.skipif(not _PASSING, reason="this Python does not tell who holds an operand")
@together("change,expected", [(_twice, [[8, 180], [24, 324]]), (_row_by_row, [[32, 48], [56, 80]]),
                              (_from_before, [[8, -4], [48, -24]]), (_filled, [[-6, 8], [0, 6]])])  # fmt: skip
def test_what_python_puts_back_into_a_tensor_of_a_graph_may_be_changed_in_place(change, expected):
    """The gradients are PyTorch's, of the sum of squares."""
    x = dynamic.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dynamic.float64, requires_grad=True)
    y = x * 2
    change(y, x)
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)


NAMED_VIEWS = {
    "row": ("v = y[1]; v += 1", [[8, 16], [28, 36]]),
    "column, twice": ("v = y[:, 1]; v *= 3; v.mul_(2)", [[8, 576], [24, 1152]]),
    "view of a view": ("v = y[1][1:]; v *= 2", [[8, 16], [24, 128]]),
    "diagonal": ("v = y.diagonal(); v.zero_()", [[0, 16], [24, 0]]),
    "flat": ("v = y.view(-1); v[1:3] *= 2", [[8, 64], [96, 32]]),
    "an axis more": ("v = y.unsqueeze(0); v.neg_()", [[8, 16], [24, 32]]),
    "two views": ("v = y[0]; u = y[0]; v *= 2; u *= 2", [[128, 256], [24, 32]]),
    "of a turned base": ("y = y.T.clone(); v = y[0]; v *= 2", [[32, 16], [96, 32]]),
    "of what has no history": ("y = torch.zeros(2, 2, dtype=x.dtype); v = y[0]; v += x[1]", [[0, 0], [6, 8]]),
    "an older view is read": ("v = y[0]; u = y[1]; v *= 2; y = y * 1 + 0 * u", [[32, 64], [24, 32]]),
}


@together("name", NAMED_VIEWS)
def test_a_view_changes_in_place_and_its_base_gets_the_history(name):
    """The gradients are PyTorch's, of the sum of squares."""
    x = dynamic.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dynamic.float64, requires_grad=True)
    program, expected = NAMED_VIEWS[name]
    held = {"x": x, "y": x * 2, "torch": dynamic}
    exec(program, held)
    (held["y"] ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)


@together("program,rule", [
    ("v = x[0]; v += 1", "view of a leaf"),
    ("y = x * 2; u, v = y[0], y[1]; del y; u *= 2", "whose base is no longer there"),
    ("y = x * 2; v = y.detach()[0]; v += x[1]", "without a history"),
    ("y = (x * 2).expand(3, 2, 2); v = y[:, 0]; v *= 2", "share memory"),
])  # fmt: skip
def test_a_view_without_a_base_to_tell_is_refused(program, rule):
    x = dynamic.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with pytest.raises(InplaceError, match=rule):
        exec(program, {"x": x})


@together("other", [None, "text"])
def test_a_tensor_differs_from_what_is_no_number(other):
    x = dynamic.ones(2, requires_grad=True)
    assert (x == other) is False
    assert (x != other) is True
