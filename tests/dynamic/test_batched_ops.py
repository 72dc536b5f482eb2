"""On-the-fly batching of every op and of random programs gives the values and gradients of one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dynamic
from graphs.op import registered_ops
from graphs.ops.movement import identity
from graphs.testing import samples
from tests.helpers.batches import assert_same, branching, each_strategy, leaf, recurrent, trees, weighted, words
from tests.helpers.slow import examples
from tests.helpers.together import together

COPIES = 3


# Every rule, on the samples of every op ---------------------------------------------------------------------------


def calls():
    """Samples of every op that computes from arrays; of the elementwise ones, which share a rule, a few."""
    for name, op in registered_ops().items():
        if op.family not in ("source", "control", "creation", "random", "elementwise") or name in ELEMENTWISE:
            yield from samples(name)


ELEMENTWISE = ("tanh", "add", "divide", "maximum", "where", "clip", "less")


def copies(sample):
    """The arrays of some calls: those of the sample, and others like them."""
    symmetric = sample.op.name in ("cholesky", "eigh")  # which other places for elements would end
    for i in range(COPIES):
        yield [(a * (1 + i) if symmetric else np.roll(a, i)) if a.dtype.kind == "f" else a for a in sample.arrays]


def run(sample, shared, batched):
    """Results and gradients of the copies, from leaves, or from deferred values of which one input may be shared."""
    values = [[leaf(a) for a in arrays] for arrays in copies(sample)]
    for arrays in values:
        if shared in range(len(arrays)):
            arrays[shared] = values[0][shared]
    if batched:
        with dynamic.batched() as batch:
            outs = [
                sample(*(v if shared in (i, "none") else identity(v) for i, v in enumerate(arrays)))
                for arrays in values
            ]
            total = weighted(outs)
        assert batch.stats.ops
    else:
        outs = [sample(*arrays) for arrays in values]
        total = weighted(outs)
    leaves = [v for arrays in values for v in arrays]
    if isinstance(total, dynamic.Tensor) and total.requires_grad:
        total.backward()
    return [o.detach().numpy() for o in outs], [None if v.grad is None else v.grad.numpy() for v in leaves]


@together("sample", list(calls()), ids=str, quick=50)
def test_every_op_batched(sample):
    for shared in ("all", "none", *range(len(sample.arrays))):
        outs, gradients = run(sample, shared, batched=False)
        batched_outs, batched_gradients = run(sample, shared, batched=True)
        for expected, got in zip(outs, batched_outs, strict=True):
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
        for expected, got in zip(gradients, batched_gradients, strict=True):
            if expected is not None and expected.size:
                np.testing.assert_allclose(
                    np.zeros_like(expected) if got is None else got, expected, rtol=1e-9, atol=1e-9
                )


@each_strategy
@examples(0.4)
@given(st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=5))
def test_sequences_of_any_length(strategy, examples):
    assert_same(recurrent, examples, strategy)


@each_strategy
@examples(0.4)
@given(st.lists(trees, min_size=1, max_size=5))
def test_trees_of_any_shape(strategy, examples):
    assert_same(branching, examples, strategy)
