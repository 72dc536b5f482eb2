"""Modules in the static engine: parameters are read in each call, modes are kept apart, and changes are refused."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as torch
import static
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs import capture, tree
from graphs.errors import DTypeError, GraphError, ShapeError

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6, 4), np.float32), RNG.integers(0, 3, 6)


def net(*more):
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), *more, nn.Linear(8, 3))


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def closing_over(model):
    return lambda x, y: loss_of(model, x, y)


def eager(model):
    with torch.no_grad():
        return loss_of(model, torch.tensor(X), torch.tensor(Y)).item()


@pytest.mark.parametrize("compiled", [static.jit, lambda f: static.compile(f, X, Y)])
def test_parameters_are_read_in_each_call(compiled):
    model = net()
    step = compiled(closing_over(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    seen = []
    for _ in range(3):
        np.testing.assert_allclose(step(X, Y), eager(model), rtol=1e-6)
        seen.append(float(step(X, Y)))
        loss_of(model, torch.tensor(X), torch.tensor(Y)).backward()
        optimizer.step()
    assert seen[0] > seen[1] > seen[2]


def test_a_tensor_that_is_no_parameter_is_read_too():
    weight = torch.ones(4, requires_grad=True)
    step = static.jit(lambda x: x @ weight)
    np.testing.assert_allclose(step(X), X.sum(1), rtol=1e-5)
    with torch.no_grad():
        weight.mul_(3)
    np.testing.assert_allclose(step(X), 3 * X.sum(1), rtol=1e-5)
    assert step.stats.compiles == 1
    weight.data = np.ones(4)
    with pytest.raises(DTypeError, match=r"read0: compiled for f32\[4\], got float64"):
        step(X)


def test_a_module_itself_is_compiled():
    model = net(nn.Dropout(0.5)).eval()
    step = static.jit(model)
    np.testing.assert_allclose(step(X), model(torch.tensor(X)).detach().numpy(), rtol=1e-6)
    assert step.__name__ == "Sequential"
    assert "_kinds" not in vars(step)
    np.testing.assert_allclose(static.compile(model, X)(X), step(X))


def test_gradients_of_a_module_are_those_of_the_dynamic_engine():
    model = net(nn.LayerNorm(8), nn.ReLU())
    (value, grads), (expected, tape) = (engine.value_and_grad(loss_of)(model, X, Y) for engine in (static, torch))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for (name, ours), (_, theirs) in zip(grads.named_parameters(), tape.named_parameters(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-7, err_msg=name)
    loss_of(model, torch.tensor(X), torch.tensor(Y)).backward()
    np.testing.assert_allclose(grads[0].weight, model[0].weight.grad.numpy(), rtol=1e-4, atol=1e-7)
    assert isinstance(model[0].weight, nn.Parameter)  # as it was


def test_a_functional_call_is_compiled_with_its_parameters_as_inputs():
    model = net()
    params = {name: param.detach().numpy() for name, param in model.named_parameters()}

    def loss(params, x, y):
        return F.cross_entropy(nn.functional_call(model, params, (x,)), y)

    executable = static.compile(static.value_and_grad(loss), params, X, Y)
    assert not executable.traced.reads
    value, grads = executable({name: 0 * values for name, values in params.items()}, X, Y)
    np.testing.assert_allclose(value, np.log(3), rtol=1e-6)
    assert grads.keys() == params.keys()


def test_each_mode_has_a_graph_of_its_own():
    model = net(nn.Dropout(0.5))
    step, compiled = static.jit(closing_over(model)), None
    for _ in range(2):
        model.eval()
        np.testing.assert_allclose(step(X, Y), eager(model), rtol=1e-6)
        compiled = compiled or static.compile(closing_over(model), X, Y)
        model.train()
        assert len({float(step(X, Y)) for _ in range(8)}) == 8  # another mask in each call
    assert step.stats.compiles == 2
    assert step.stats.reasons == ["first call", "a module was in another mode"]
    with pytest.raises(GraphError, match=r"compiled while Dropout\.training was False"):
        compiled(X, Y)
    given = static.jit(loss_of)
    given(model, X, Y), given(model.eval(), X, Y)
    assert given.stats.compiles == 2


def test_dropout_of_a_graph_keeps_as_much_as_that_of_the_tape():
    layer = nn.Dropout(0.25)
    found = static.jit(layer.forward)(np.ones((300, 300), np.float32))
    assert set(np.unique(found)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(found.mean() - 1) < 0.02


def test_batch_norm_runs_in_evaluation_and_says_why_not_in_training():
    model = net(nn.BatchNorm1d(8))
    step = static.jit(closing_over(model))
    with pytest.raises(GraphError, match=r"running statistics cannot change.*eval\(\)"):
        step(X, Y)
    assert model[2].num_batches_tracked.item() == 0
    model.eval()
    before = step(X, Y)
    np.testing.assert_allclose(before, eager(model), rtol=1e-6)
    model[2].running_mean.add_(1)
    np.testing.assert_allclose(step(X, Y), eager(model), rtol=1e-6)
    assert step(X, Y) != before
    with torch.no_grad():
        model[2].running_var.add_(1)
        model[2].weight.mul_(3)
    np.testing.assert_allclose(step(X, Y), eager(model), rtol=1e-6)
    free = net(nn.BatchNorm1d(8, track_running_stats=False))
    np.testing.assert_allclose(static.jit(closing_over(free))(X, Y), eager(free), rtol=1e-6)


def test_what_is_made_of_tensors_alone_is_made_anew_in_each_call():
    """An op on tensors that the function reads is a node: run as it is traced, it kept what they held then."""
    w = torch.tensor(np.ones(3, np.float32))
    mask = torch.tensor(np.array([True, False, True]))

    def f(x):
        scaled = torch.where(mask, w * 2, w.T.exp())
        return (scaled * x).sum(), w.mean()

    step, x = static.jit(f), np.arange(3, dtype=np.float32)
    for change in (lambda: None, lambda: w.add_(1), lambda: mask.copy_(torch.tensor([False, True, True]))):
        change()
        for compiled, plain in zip(step(x), f(torch.tensor(x)), strict=True):
            np.testing.assert_allclose(compiled, plain.numpy(), rtol=1e-6)
    assert step.stats.compiles == 1


@pytest.mark.parametrize("convert", [False, True])
def test_python_decides_by_a_small_tensor_that_is_read_and_a_guard_holds_its_value(convert):
    which = torch.tensor(np.array([True, False]))

    def f(x):
        columns = [x * 2, x] if which[0] and not which[1] else [x]  # another structure on each path
        return columns if which.any() else [*columns, x]

    step, x = static.jit(f, convert=convert), np.ones(3, np.float32)
    compiled = static.compile(f, x, convert=convert)
    for values in ([True, False], [False, False], [True, True], [True, False]):
        which.copy_(torch.tensor(values))
        found = [column.tolist() for column in step(x)]
        assert found == [column.tolist() for column in f(torch.tensor(x))]
    assert step.stats.compiles == 3
    assert step.stats.reasons[1:] == ["a tensor that Python decided by had another value"] * 2
    which.zero_()
    with pytest.raises(GraphError, match=r"compiled while a tensor bool\[2\]\.value was"):
        compiled(x)


READS = {
    "bool": lambda count, x: x * 2 if count else x,
    "int": lambda count, x: x * int(count),
    "float": lambda count, x: x * float(count),
    "item": lambda count, x: x * count.item(),
    "tolist": lambda count, x: x * count.tolist(),
    "range": lambda count, x: x * len(range(count)),
    "numpy": lambda count, x: x * count.numpy(),
    "asarray": lambda count, x: x * np.asarray(count),
}


@pytest.mark.parametrize("convert", [False, True])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_tensor_that_is_handed_to_python_is_read_again_in_the_next_call(read, convert):
    """Its value was taken when the function was traced, and stayed so, without a word."""
    count, x = torch.tensor(3), np.ones(3, np.float32)
    step = static.jit(lambda x: read(count, x), convert=convert)
    for value in (3, 0, 2, 3, 5, 6, 7):
        count.fill_(value)
        np.testing.assert_array_equal(step(x), read(count, torch.tensor(x)).numpy())
    assert step.stats.compiles == 6


def test_a_size_may_be_computed_and_a_number_that_is_computed_with_stays_a_tensor():
    count, x = torch.tensor(3), np.ones(3, np.float32)
    step = static.jit(lambda x: [x] * int(count + 1))
    assert len(step(x)) == 4
    count.fill_(1)
    assert len(step(x)) == 2
    for use in (float, lambda tensor: tensor.item()):
        with pytest.raises(GraphError, match="keep it a tensor"):
            static.jit(lambda x, use=use: x * use(count + 1))(x)


def test_the_guard_of_one_tensor_never_stands_for_that_of_another():
    """A graph for one value of `first` was taken for that value of `second`, once `first` had varied too much."""
    first, second, x = torch.tensor(1), torch.tensor(5), np.ones(3, np.float32)

    def f(x, uses):
        x = x * 2 if first > 0 else x
        return (x * 3 if second > 3 else x) if uses else x

    step = static.jit(f, convert=True)
    step(x, False), step(x, True)
    for number in (-1, -2, 3, -4, 5, -6):
        first.fill_(number)
        second.fill_(1 if number < -3 else 5)
        for uses in (True, False):
            np.testing.assert_array_equal(step(x, uses), f(torch.tensor(x), uses).numpy())
    second.fill_(1)
    first.fill_(-7)
    for uses in (True, False):
        np.testing.assert_array_equal(step(x, uses), f(torch.tensor(x), uses).numpy())


def test_a_tensor_that_varies_much_decides_no_longer():
    count, x = torch.tensor(np.float32(0)), np.ones(3, np.float32)

    def staged(x):
        return x * 2 if count > 2 else x

    steps = {convert: static.jit(staged, convert=convert) for convert in (False, True)}
    for number in range(6):
        count.fill_(number)
        np.testing.assert_array_equal(steps[True](x), staged(x))
        if number < capture.MOST_VALUES:
            np.testing.assert_array_equal(steps[False](x), staged(x))
    assert steps[True].stats.compiles == capture.MOST_VALUES + 1  # the last with both branches in its graph
    with pytest.raises(GraphError, match="if"):
        steps[False](x)


@pytest.mark.parametrize(
    "w", [torch.ones(3, requires_grad=True), torch.ones(2000)], ids=["one that is trained", "a large one"]
)
def test_a_trace_decides_by_no_value_of_another_tensor(w):
    with pytest.raises(GraphError, match="if"):
        static.jit(lambda x: x * 2 if w.sum() > 0 else x)(np.ones(3, np.float32))


def test_what_cannot_be_is_refused(tmp_path):
    model = net()
    executable = static.compile(closing_over(model), X, Y)
    with pytest.raises(GraphError, match="reads 4 tensors that are no arguments"):
        executable.save(tmp_path / "graph")
    padded = static.jit(closing_over(model), shapes="pad", dims=(("B", None), ("B",)), buckets=[8])
    with pytest.raises(ShapeError, match="reads tensors that are no arguments"):
        padded(X, Y)
    with pytest.raises(GraphError, match="inplace=True"):
        static.jit(lambda x: F.relu(x, inplace=True))(X)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.LSTM(4, 3, 2, batch_first=True), (2, 5, 4)),
        (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
        (nn.Conv2d(2, 3, 3, padding=1), (2, 2, 6, 6)),
        (nn.GroupNorm(2, 4), (3, 4, 5)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_give_the_same_in_both_engines(model, shape):
    x = RNG.standard_normal(shape, np.float32)

    def loss(model, x):
        output = model(x)
        output = output[0] if isinstance(output, tuple) else output
        return torch.sum(output * output)

    (value, grads), (expected, tape) = (engine.value_and_grad(loss)(model, x) for engine in (static, torch))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for ours, theirs in zip(*(one.named_parameters(remove_duplicate=False) for one in (grads, tape)), strict=True):
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-3, atol=1e-5, err_msg=ours[0])


def test_what_runs_without_a_gradient_in_pytorch_has_none_in_a_graph():
    def loss(p, x):
        with torch.no_grad():
            target = (p * x).sum()
        return (p * x).sum() * target + (p.detach() * x).sum() + (p.data * x).sum()

    p, x = np.ones(3, np.float32), np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(static.value_and_grad(loss)(p, x)[1], torch.value_and_grad(loss)(p, x)[1])
    with torch.no_grad():  # a block around the whole call is not of the function
        np.testing.assert_allclose(static.value_and_grad(loss)(p, x)[1], 3 * x)


def test_an_activation_in_place_is_one_of_a_graph():
    layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2), nn.LeakyReLU(0.2, inplace=True))

    def loss(x):
        return layers(x).view(x.size(0), -1).sum()

    x = np.random.default_rng(0).standard_normal((5, 3), np.float32)
    np.testing.assert_allclose(static.jit(loss)(x), loss(torch.tensor(x)).item(), rtol=1e-6)


def test_memory_that_an_activation_has_changed_is_not_read_under_another_name():
    def aliased(x):
        hidden = x * 2
        view = hidden.reshape(-1)
        F.relu(hidden, inplace=True)
        return view.sum()

    x = np.ones((2, 3), np.float32)
    with pytest.raises(GraphError, match="only the layout tells whether this is a view"):
        static.jit(aliased)(x)
    with pytest.raises(GraphError, match="an argument is changed in place"):
        static.jit(lambda x: F.relu(x, inplace=True))(x)
    assert static.jit(lambda x: x.reshape(-1).sum())(x) == 6  # what was refused before leaves nothing behind


def _changed_in_part(x):
    whole = x * 2
    part = whole[0]
    part.add_(1)
    return whole


def _changed_as_a_whole(x):
    whole = x * 2
    view = whole.view(-1)
    whole.add_(1)
    return {"view": [view]}


def _changed_number(x):
    total = (x * 2).sum()
    total.view(1).mul_(5)
    return total


def _differentiated(x):
    total = (x * 2).sum()
    total.view(1).mul_(5)
    return torch.autograd.grad(total, x)


CHANGED = {
    _changed_in_part: [[3, 3, 3], [2, 2, 2]],
    _changed_as_a_whole: [3, 3, 3, 3, 3, 3],
    _changed_number: 60,
    _differentiated: [[10, 10, 10], [10, 10, 10]],
    static.grad(_changed_number): [[10, 10, 10], [10, 10, 10]],
}


@pytest.mark.parametrize("convert", [False, True])
@pytest.mark.parametrize("f", CHANGED)
def test_what_was_changed_under_another_name_is_returned_and_differentiated_so(f, convert):
    (found,) = tree.leaves(static.jit(f, convert=convert)(torch.ones(2, 3)))
    np.testing.assert_array_equal(found, CHANGED[f])


def test_gradients_are_clipped_by_their_norm_in_a_graph():
    class Weight:
        def __init__(self, grad):
            self.grad = grad

    def clipped(gradients):
        weights = [Weight(gradient) for gradient in gradients]
        norm = nn.utils.clip_grad_norm_(weights, 1.0)
        return norm, [weight.grad for weight in weights]

    norm, gradients = static.jit(clipped)([np.full(2, 3, np.float32), np.full(2, 4, np.float32)])
    np.testing.assert_allclose(norm, 50**0.5, rtol=1e-6)
    np.testing.assert_allclose(gradients, [[3 / 50**0.5] * 2, [4 / 50**0.5] * 2], rtol=1e-5)


def test_sizes_that_follow_from_known_values_are_known():
    """Crops of one size run together, as DINO runs them: the counts of known values are constants of the graph."""

    def by_size(*crops):
        sizes = torch.tensor([crop.shape[-1] for crop in crops])
        values, counts = torch.unique_consecutive(sizes, return_counts=True)
        start, total = 0, values.unique().sum() + torch.nonzero(sizes == 4).sum() + torch.argwhere(sizes).sum()
        for end in torch.cumsum(counts, 0):
            total = total * 2 + torch.cat(crops[start:end]).sum()
            start = end
        return total

    crops = [torch.ones(2, 8), torch.ones(2, 8), torch.ones(1, 4)]
    for convert in (False, True):
        assert static.jit(by_size, convert=convert)(*crops) == by_size(*crops)
