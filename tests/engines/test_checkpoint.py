"""Gradient checkpointing: the same gradients, fewer saved bytes, the same random numbers."""

import random

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic import checkpoint, tape_stats
from graphs import tree
from graphs.errors import GraphError, InplaceError, NotDifferentiableError
from tests.helpers.random_graphs import random_program
from tests.helpers.together import together

W = np.random.default_rng(0).normal(size=(6, 6)) / 2
X = np.random.default_rng(1).normal(size=(4, 6))


def plainly(f, *args, **kwargs):
    """What checkpoint is compared with."""
    return f(*args, **kwargs)


def block(h, w):
    for _ in range(3):
        h = g.tanh(h @ w) * g.exp(-h * h)
    return h


def leaf(value):
    return dynamic.tensor(np.array(value), requires_grad=True)


def gradients(model, *values):
    """Run a model on leaves of these values, and give the gradient of each."""
    leaves = [leaf(value) for value in values]
    g.sum(model(*leaves)).backward()
    return [x.grad.numpy() for x in leaves]


def same(left, right):
    pairs = zip(tree.leaves(left), tree.leaves(right), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@together("seed", range(40))
def test_random_programs_have_the_same_values_and_gradients(seed):
    program = random_program(seed)
    inputs = list(program.inputs)
    expected = dynamic.value_and_grad(program)(inputs)
    found = dynamic.value_and_grad(lambda values: checkpoint(program, values))(inputs)
    assert same(found, expected), str(program)


def test_gradients_are_equal_and_fewer_bytes_are_saved():
    def stack(call):
        w, h = leaf(W), leaf(X)
        x = h
        for _ in range(4):
            h = call(block, h, w)
        loss = g.sum(h * h)
        stats = tape_stats(loss)
        loss.backward()
        return stats, [w.grad.numpy(), x.grad.numpy()]

    (plain, expected), (kept, found) = stack(plainly), stack(checkpoint)
    assert same(found, expected)
    assert kept.nodes == plain.nodes
    states = 4 * X.nbytes  # after each block; the first is a leaf
    assert kept.saved_bytes == states
    assert plain.saved_bytes > 3 * states


def test_values_are_computed_again_once_and_freed_as_backward_goes():
    runs = []

    def f(x):
        runs.append(x)
        return g.exp(g.sin(x))

    x = leaf(X)
    y = checkpoint(f, x)
    assert len(runs) == 1
    loss = g.sum(y * y)
    loss.backward(retain_graph=True)
    first = x.grad.numpy().copy()
    loss.backward()
    assert len(runs) == 2
    assert (x.grad.numpy() == 2 * first).all()
    with pytest.raises(NotDifferentiableError, match="second time"):
        loss.backward()


def test_what_a_function_reads_without_being_given_it_gets_gradients():
    def closed(call):
        def model(x, w):
            inner = w * 2  # no leaf
            return call(lambda h: block(h, inner) + w[0], x)

        return gradients(model, X, W)

    assert same(closed(checkpoint), closed(plainly))


def test_containers_keyword_arguments_and_several_results():
    def f(parts, *, scale, name):
        assert name == "f"
        a, (b, nothing) = parts["a"], parts["rest"]
        assert nothing is None
        return {"sum": (a + b) * scale, "both": [a * b, (g.sin(a), 3)], "plain": np.ones(2)}

    def model(call):
        def run(a, b):
            out = call(f, {"rest": (b, None), "a": a}, scale=a * 3, name="f")
            assert out["both"][1][1] == 3
            return out["sum"] + out["both"][0] * out["both"][1][0]

        return gradients(run, X, X + 1)

    assert same(model(checkpoint), model(plainly))


def test_one_of_several_results_may_be_dropped_or_differentiated_alone():
    x = leaf(X)
    kept, dropped = checkpoint(lambda x: (g.exp(x) * x, g.sin(x) * x), x)
    del dropped
    g.sum(kept).backward()
    assert np.allclose(x.grad.numpy(), np.exp(X) * (1 + X))
    y = leaf(X)
    first, second = checkpoint(lambda y: (g.exp(y) * y, g.sin(y) * y), y)
    g.sum(first).backward()
    g.sum(second).backward()
    assert np.allclose(y.grad.numpy(), np.exp(X) * (1 + X) + np.sin(X) + X * np.cos(X))


def test_checkpoints_nest():
    def nested(call):
        def model(x, w):
            def inner(h):
                return call(block, h, w) * 2

            def outer(h):
                return call(inner, h) + call(inner, g.sin(h))

            return call(outer, x)

        return gradients(model, X, W)

    assert same(nested(checkpoint), nested(plainly))


def test_transforms_of_any_order():
    def loss(call):
        return lambda params, x: g.sum(call(lambda h: block(h, params["w"]), x) ** 2)

    args = {"w": W[:2, :2]}, X[:1, :2]
    for transform in (
        lambda f: dynamic.value_and_grad(f, argnums=(0, 1))(*args),
        lambda f: dynamic.hvp(f, args, args),
        lambda f: dynamic.hessian(f)(*args),
        lambda f: dynamic.jacobian(dynamic.grad(f, 1), 1)(*args),
        lambda f: dynamic.vjp(f, *args)[1](np.float64(1.5)),
    ):
        expected, found = transform(loss(plainly)), transform(loss(checkpoint))
        assert all(np.allclose(a, b) for a, b in zip(tree.leaves(expected), tree.leaves(found), strict=True))


def test_a_gradient_that_is_recorded_has_a_gradient():
    def second(call):
        x = leaf(X)
        g.sum(call(lambda x: g.exp(g.sin(x)), x)).backward(create_graph=True)
        first, x.grad = x.grad, None
        g.sum(first * first).backward()
        return x.grad.detach().numpy()

    assert np.allclose(second(checkpoint), second(plainly))


def test_random_numbers_are_drawn_again():
    def model(call):
        def noisy(x, own, key):
            mask = np.random.random(X.shape) < 0.5  # noqa: NPY002  (a user's function may)
            scale = random.random() + own.random()
            return g.dropout(g.exp(x) * mask * scale, 0.5, key)

        np.random.seed(3)  # noqa: NPY002
        random.seed(4)
        generator = np.random.default_rng(5)
        x = leaf(X)
        loss = g.sum(call(noisy, x, generator, g.random_key(6)) ** 2)
        after = random.random(), np.random.random(), generator.random()  # noqa: NPY002
        loss.backward()
        return loss.item(), x.grad.numpy(), after, random.random(), np.random.random(), generator.random()  # noqa: NPY002

    assert same(model(checkpoint), model(plainly))


def test_the_generator_of_layers_draws_again():
    def model(call):
        dynamic.manual_seed(3)
        x, drop = leaf(X), dynamic.nn.Dropout(0.5)
        loss = g.sum(call(lambda x: drop(g.exp(x)) ** 2, x))
        after = dynamic.rand(3).numpy()
        loss.backward()
        return loss.item(), x.grad.numpy(), after, dynamic.rand(3).numpy()

    assert same(model(checkpoint), model(plainly))


def test_the_second_run_ends_with_the_last_saved_value_as_in_pytorch():
    """What is changed before it changes twice, and what comes after it once: PyTorch 2.13 gives these counts."""
    seen = []

    def f(x):
        seen.append("first")
        h = g.tanh(x * 2)
        seen.append("in between")
        h = h * h
        seen.append("after the last")
        return h + 1

    g.sum(checkpoint(f, leaf(X))).backward()
    assert {name: seen.count(name) for name in seen} == {"first": 2, "in between": 2, "after the last": 1}


def test_running_statistics_are_of_the_op_that_normalizes():
    """They change in each run, as in PyTorch, also where nothing is saved after it."""
    norm = dynamic.nn.BatchNorm1d(6, momentum=0.5)
    g.sum(checkpoint(norm, leaf(X.astype(np.float32))) * 2).backward()
    assert int(norm.num_batches_tracked) == 2
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.75 * X.mean(0), rtol=1e-5)


def test_what_saves_nothing_does_not_run_again():
    runs = []

    def f(x):
        runs.append(x)
        return x + 1

    g.sum(checkpoint(f, leaf(X))).backward()
    assert len(runs) == 1


def test_nothing_is_kept_or_run_again_where_nothing_is_recorded():
    runs = []
    with dynamic.no_grad():
        assert not checkpoint(lambda x: runs.append(1) or x * 2, leaf(X)).requires_grad
    assert same(checkpoint(g.exp, X), np.exp(X))
    assert runs == [1]


def test_hooks_inside_see_each_gradient_once():
    seen = []

    def f(x):
        y = g.sin(x)
        y.register_hook(lambda gradient: seen.append(gradient.numpy().copy()))
        return g.exp(y)

    x = leaf(X)
    g.sum(checkpoint(f, x)).backward()
    assert len(seen) == 1
    assert np.allclose(seen[0], np.exp(np.sin(X)))


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (g.sin, r"recorded sin\(f64\[4,6\]\) where the first recorded exp\(f64\[4,6\]\)"),
        (lambda x: g.exp(x[:2]), r"recorded exp\(f64\[2,6\]\) where the first recorded exp\(f64\[4,6\]\)"),
        (lambda x: x, r"recorded nothing where the first recorded exp\(f64\[4,6\]\)"),
    ],
)
def test_another_second_run_is_refused(second, told):
    runs = iter([g.exp, second])

    def f(x):
        return next(runs)(x)

    y = checkpoint(f, leaf(X))
    with pytest.raises(NotDifferentiableError, match=rf"checkpoint at test_checkpoint.py:\d+ {told}; let the"):
        g.sum(y).backward()


def test_an_error_in_the_second_run_says_where_it_comes_from():
    runs = [g.exp]

    def f(x):
        return runs.pop()(x)

    y = checkpoint(f, leaf(X))
    with pytest.raises(IndexError) as caught:
        g.sum(y).backward()
    assert "in the second run of the checkpoint at test_checkpoint.py" in caught.value.__notes__[0]


def test_arguments_may_not_change_before_the_second_run():
    x = leaf(X)
    h = x * 2
    y = checkpoint(lambda h: g.exp(g.sin(h)), h)
    h += 1
    with pytest.raises(InplaceError, match=r"changed in place \(test_checkpoint.py:\d+\)"):
        g.sum(y).backward()


def test_a_function_may_not_change_its_argument():
    def f(h):
        h *= 2
        return g.exp(h)

    with pytest.raises(InplaceError, match="checkpoint: a value that backward needs was changed in place"):
        checkpoint(f, leaf(X) * 1)


def test_a_callers_container_may_change():
    x, y = leaf(X), leaf(X + 1)
    both = {"x": x, "y": y}
    loss = g.sum(checkpoint(lambda both: g.exp(both["x"]) * both["y"], both))
    both["x"], both["y"] = y, x
    loss.backward()
    assert np.allclose(x.grad.numpy(), np.exp(X) * (X + 1))


def test_an_error_in_the_first_run_is_the_functions_own():
    with pytest.raises(GraphError, match="matmul"):
        checkpoint(lambda x: x @ x, leaf(X))


def test_with_a_pool_the_bits_are_the_same():
    def model(x, w):
        return checkpoint(block, checkpoint(block, x, w), w)

    expected = gradients(lambda x, w: block(block(x, w), w), X, W)
    with dynamic.pool(threshold=0):
        for _ in range(3):
            assert same(gradients(model, X, W), expected)
