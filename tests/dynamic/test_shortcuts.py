"""Shortcuts do what the interpreter does: same values, same entries, same gradients to the bit, same errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic import tapes
from dynamic.node import Leaf
from dynamic.tape import history
from graphs import dispatch, op, promotion
from graphs.spec import spec_of
from graphs.testing.samples import samples
from tests.helpers.random_graphs import random_program
from tests.helpers.recorded import NO_SAMPLES, described, elementwise, operand
from tests.helpers.slow import mostly_slow
from tests.helpers.together import together

DTYPES = (np.float32, np.float64, np.float16, np.int64, np.bool_)


def both_ways(call: Callable[[], Any]) -> tuple[Any, Any]:
    """What a call gives by shortcuts, and what it gives while somebody watches: a result, or the error."""

    def outcome() -> Any:
        try:
            with np.errstate(all="ignore"):
                return call()
        except Exception as error:  # noqa: BLE001  (whatever it is, it must be the same)
            return type(error), str(error)

    outcome()  # the first use of an op installs its shortcut
    quick = outcome()
    with dispatch.observe_kernels(lambda *_: None):
        return quick, outcome()


@pytest.mark.parametrize("dtype", mostly_slow(DTYPES, 1), ids=lambda d: np.dtype(d).name)
@together("one", elementwise(), ids=lambda o: o.name, quick=4)
def test_elementwise_ops_of_every_dtype_beside_tensors_and_numbers(one: op.Op, dtype: Any) -> None:
    x = np.array([[0.25, 0.5, 1.0]]).astype(dtype)
    others = [np.array([[0.5], [0.25]], d) for d in DTYPES] + [
        2,
        0,
        -3,
        0.5,
        0.0,
        -0.0,
        np.nan,
        True,
        10**30,
        np.float32(2),
    ]
    calls = [(x,)] if one.arity == 1 else [pair for other in others for pair in ((x, other), (other, x))]
    for arrays in calls:
        for wanted in range(1 << len(arrays)):

            def call(arrays: Any = arrays, wanted: int = wanted) -> Any:
                result = one(*[operand(a, bool(wanted >> i & 1)) for i, a in enumerate(arrays)])
                return described(result) if isinstance(result, dynamic.Tensor) else result.tobytes()

            quick, watched = both_ways(call)
            assert quick == watched, (arrays, wanted)


@together("name", sorted(o.name for o in op.registered_ops().values() if o.family not in NO_SAMPLES), quick=60)
def test_every_sample_of_every_op_with_its_gradients(name: str) -> None:
    for sample in samples(name):

        def call(sample: Any = sample) -> Any:
            inputs = [operand(a, True) for a in sample.args]
            result = sample.op(*inputs, **sample.attrs)
            if not isinstance(result, dynamic.Tensor):
                return None
            found = described(result)
            if result.requires_grad:
                seed = np.linspace(-1, 1, result.size).reshape(result.shape).astype(result.dtype)
                result.backward(dynamic.tensor(seed))
            gradients = [i.grad for i in inputs if isinstance(i, dynamic.Tensor)]
            return found, [None if gradient is None else described(gradient) for gradient in gradients]

        quick, watched = both_ways(call)
        assert quick == watched, sample


@together("seed", range(60))
def test_random_graphs_have_the_same_gradients_to_the_bit(seed: int) -> None:
    program = random_program(seed)
    step = dynamic.value_and_grad(program)

    def call() -> Any:
        value, gradients = step(list(program.inputs))
        return value.tobytes(), [x.tobytes() for x in gradients]

    quick, watched = both_ways(call)
    assert quick == watched


def test_a_float_in_gives_a_float_out() -> None:
    """What a shortcut does not look at: a result of floats that need a gradient is floating."""
    for one in elementwise():
        if one.rules and one.prepare is None:
            for dtype in (np.float16, np.float32, np.float64):
                others = [np.ones(2, d) for d in DTYPES] if one.arity == 2 else [None]
                for other in others:
                    arrays = [np.ones(2, dtype)] + ([] if other is None else [other])
                    spec = None
                    try:
                        spec = one.infer(*map(spec_of, arrays))
                    except g.GraphError:
                        continue
                    assert spec.is_float, (one, arrays)


def test_what_matters_is_asked_on_every_call() -> None:
    x = dynamic.ones(2, requires_grad=True)
    assert (x * x).requires_grad  # and installs it
    with dynamic.no_grad():
        assert not (x * x).requires_grad
    seen: list[str] = []
    with dispatch.observe_kernels(lambda one, *_: seen.append(one.name)):
        y = x * x
    assert seen == ["multiply"]
    assert y.requires_grad


def test_numbers_in_one_cache_do_not_mix() -> None:
    x, whole = dynamic.ones(2), dynamic.tensor(np.ones(2, np.int32))
    for _ in range(2):
        assert (whole * 2).dtype == np.int32
        assert (whole * 2.0).dtype == np.float32  # as in PyTorch
        assert (x * 2).dtype == (x * 2.0).dtype == np.float32
        assert np.signbit((x * -0.0).numpy()).all()
        assert not np.signbit((x * 0.0).numpy()).any()
    most, promotion.numbers.most = promotion.numbers.most, 4
    try:
        for i in range(1, 20):
            assert (x * float(i)).tolist() == [i, i]
    finally:
        promotion.numbers.most = most


def test_options_are_checked_whatever_has_been_called_before() -> None:
    x = dynamic.ones(2, 3, requires_grad=True)
    assert x.sum(axis=1).shape == (2,)
    with pytest.raises(g.ShapeError, match="an axis is an int"):
        x.sum(axis=1.0)
    with pytest.raises(g.ShapeError, match="axis 2 is out of range"):
        x.sum(axis=2)
    with pytest.raises(g.ShapeError, match="axis 1 is out of range"):
        x[0].sum(axis=1)
    assert x.reshape(3, 2).shape == dynamic.reshape(x, [3, 2]).shape == (3, 2)
    assert x.sum(axis=(1,)).shape == (2,)
    with pytest.raises(g.ShapeError, match="an axis is an int"):
        x.sum(axis=(1.0,))
    padded = [g.pad(x, 1, value).detach().numpy()[0, 0] for value in (0.0, -0.0, 0, -0.0, 0.0)]
    assert np.signbit(padded).tolist() == [False, True, False, True, False]


def test_tapes_in_threads_do_not_mix() -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            for _ in range(30):
                start = rng.normal(size=5)
                x = dynamic.tensor(start, requires_grad=True)
                with dynamic.no_grad():
                    assert not (x * 2.0).requires_grad
                y = (dynamic.tanh(x * 2.0) * x).sum()
                y.backward()
                t = np.tanh(2 * start)
                np.testing.assert_allclose(x.grad.numpy(), t + start * 2 * (1 - t * t), rtol=1e-12)
                assert dynamic.is_grad_enabled()
        except BaseException as error:  # noqa: BLE001  (told in the thread of the test)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_long_tape_costs_no_more_than_400_bytes_an_op() -> None:
    x = dynamic.ones(2, requires_grad=True)
    for count in (100, 1000):
        h = x
        for _ in range(count):
            h = h * 0.5 + x
        stats = dynamic.tape_stats(h)
        assert stats.nodes == 2 * count
        assert stats.structure_bytes <= 400 * stats.nodes


def test_history_finds_every_entry_and_leaf_once() -> None:
    x, y = dynamic.ones(2, requires_grad=True), dynamic.ones(2, requires_grad=True)
    h = x * y
    z = h + h * x
    entries, leaves = history([z._edge])
    assert [entry.op.name for entry in entries] == ["multiply", "multiply", "add"]
    assert leaves == {x._edge, y._edge}
    assert all(type(leaf) is Leaf for leaf in leaves)


@pytest.mark.skipif(not tapes.is_compiled(), reason="the tape in Python has one way for all")
def test_a_change_in_place_of_a_history_slows_only_what_is_older(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise AssertionError("the interpreter was asked")

    x = dynamic.ones(3, requires_grad=True)
    older = x * 1
    view = older[1:]
    (x + x, g.sum(x))  # whose first use is the interpreter's
    older += 1
    with monkeypatch.context() as patch:
        patch.setitem(dispatch.interpreters, dynamic.Tensor, stop)
        newer = x + x  # of a leaf, which is older than any change and has no history to lose
        assert g.sum(newer + newer).item() == 12
        with pytest.raises(AssertionError, match="was asked"):
            g.sum(view)
    with pytest.raises(g.GraphError, match="base was changed in place"):
        g.sum(view)
