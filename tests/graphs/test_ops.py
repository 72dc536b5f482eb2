"""Every op of the registry: samples, kernel, spec, cost and rules, and the same in both engines.

Its gradients are compared with finite differences in `tests/compare/test_claim_gradients.py`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types

import numpy as np
import pytest

import graphs
import static
from graphs import GraphError
from graphs.op import registered_ops
from graphs.ops.gamma import no_gradient_rule
from graphs.spec import spec_of
from graphs.testing import check_grads, samples
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.slow import some_of_each
from tests.helpers.together import check_each, together

OPS = {name: op for name, op in registered_ops().items() if op.family not in ("source", "control")}
DTYPES = ("float64", "float32", "int64", "int32", "int8", "uint8", "bool")


def samples_of(name):
    try:
        return samples(name)
    except GraphError:
        return []  # test_has_samples names the op


SAMPLES = [sample for name in OPS for sample in samples_of(name)]
DIFFERENTIABLE = [sample for sample in SAMPLES if sample.differentiable]
HELD = [
    sample
    for sample in DIFFERENTIABLE
    if len(sample.differentiable) < sum(array.dtype.kind == "f" for array in sample.arrays)
]
"""Samples of which some floating point input has no rule."""


def kernel(sample, out=None):
    inputs, attrs = sample.prepared()
    with np.errstate(all="ignore"):  # small ints overflow and zero divides: here only the type of the result counts
        return sample.op.kernel(*inputs, out=out, **attrs)


def inferred(sample):
    inputs, attrs = sample.prepared()
    return sample.op.infer(*map(spec_of, inputs), **attrs)


def accepted(sample):
    """The sample in every dtype that the op takes."""
    for dtype in DTYPES:
        other = sample.cast(dtype)
        try:
            inferred(other)
        except graphs.DTypeError:
            with pytest.raises(TypeError):
                kernel(other)
        else:
            yield other


# The registry -------------------------------------------------------------------------------------


@together("name", OPS)
def test_has_samples_for_each_rule_and_a_docstring(name):
    assert samples(name)
    checked = {i for sample in samples(name) for i in sample.differentiable}
    arity = OPS[name].arity or 1
    rules = {i: rule for i in range(arity) if (rule := OPS[name].rule(i))}
    assert {i for i, rule in rules.items() if rule.apply is not no_gradient_rule} <= checked
    assert OPS[name].__doc__.endswith(".")


def test_samples_are_the_same_every_time():
    first, second = samples("matmul"), samples("matmul")
    assert [s.title for s in first] == [s.title for s in second]
    for a, b in zip(first, second, strict=True):
        for x, y in zip(a.arrays, b.arrays, strict=True):
            np.testing.assert_array_equal(x, y)


def test_an_op_without_samples_is_named():
    with pytest.raises(GraphError, match="op 'input' has no samples"):
        samples("input")


# Kernels, specs and costs -------------------------------------------------------------------------


def kernel_gives_the_inferred_spec(sample):
    for call in accepted(sample):
        assert spec_of(np.asarray(kernel(call))) == inferred(call), call.arrays


def out_reaches_the_kernel(sample):
    for call in accepted(sample):
        spec = inferred(call)
        buffer = np.full(spec.shape, 7, spec.dtype)
        expected = kernel(call)
        assert kernel(call, out=buffer) is buffer
        np.testing.assert_array_equal(buffer, expected)


def kernel_changes_no_input(sample):
    before = [np.array(a) for a in sample.arrays]
    kernel(sample, out=np.empty(inferred(sample).shape, inferred(sample).dtype))
    for array, copy in zip(sample.arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def only_views_share_memory_with_their_input(sample):
    shares = any(np.shares_memory(kernel(sample), array) for array in sample.arrays)
    assert sample.op.view or not shares


def takes_read_only_inputs(sample):
    for array in sample.arrays:
        array.flags.writeable = False
    kernel(sample)


def cost_is_a_count(sample):
    inputs, attrs = sample.prepared()
    cost = sample.op.cost(*map(spec_of, inputs), out=inferred(sample), **attrs)
    assert isinstance(cost, int)
    assert cost >= 0


def symbolic_sizes_infer_as_numbers_do(sample):
    """An op that infers with the first axis of each input named gives the number's spec back."""
    inputs, attrs = sample.prepared()
    names = {size: f"n{size}" for array in inputs for size in array.shape if size > 1}
    specs = [graphs.TensorSpec([names.get(s, s) for s in a.shape], a.dtype) for a in inputs]
    try:
        spec = sample.op.infer(*specs, **attrs)
    except GraphError:
        return  # attributes hold numbers, which then contradict the names
    values = {name: size for size, name in names.items()}
    assert tuple(graphs.dims.evaluate(s, values) for s in spec.shape) == inferred(sample).shape
    assert spec.dtype == inferred(sample).dtype


PROPERTIES = [
    kernel_gives_the_inferred_spec,
    out_reaches_the_kernel,
    kernel_changes_no_input,
    only_views_share_memory_with_their_input,
    takes_read_only_inputs,
    cost_is_a_count,
    symbolic_sizes_infer_as_numbers_do,
]


def each_sample(samples):
    """Every sample; `make test` takes two of each op."""
    return together("sample", samples, quick=some_of_each((sample.op.name for sample in samples), 2))


@each_sample(SAMPLES)
def test_kernel_spec_and_cost(sample):
    check_each(PROPERTIES, lambda holds: holds(sample), name=lambda holds: holds.__name__)


# Rules --------------------------------------------------------------------------------------------


def code_of(function):
    """The syntax of a function, found in its module by its line."""
    for node in functions_of(inspect.getmodule(function)):
        if node.lineno == function.__code__.co_firstlineno:
            yield node


@functools.cache
def functions_of(module):
    tree = ast.parse(inspect.getsource(module))
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Lambda, ast.FunctionDef))]


def numpy_calls(function, seen):
    """The NumPy names used by a rule or a helper of it; a number made from constants is no array work."""
    if function in seen:
        return
    seen.add(function)
    for tree in code_of(function):
        constants = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call) and _constant_arguments(n)}
        for node in ast.walk(tree):
            found = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
            if found and id(node) not in constants:
                yield ast.unparse(node)
    for name in function.__code__.co_names:
        helper = function.__globals__.get(name)
        if isinstance(helper, types.FunctionType) and helper.__module__.startswith("graphs.ops"):
            yield from numpy_calls(helper, seen) if helper.__module__ != "graphs.ops.shapes" else ()


def _constant_arguments(call):
    return call.args and all(isinstance(a, ast.Constant) for a in call.args)


@together("name", OPS)
def test_rules_are_written_in_ops_and_never_in_numpy(name):
    used = [n for rule in OPS[name].rules if rule for n in numpy_calls(rule.apply, set())]
    assert not used


def test_the_search_for_numpy_in_rules_finds_it():
    assert list(numpy_calls(lambda g: np.multiply(g, 2), set())) == ["np.multiply"]
    assert list(numpy_calls(lambda g: graphs.multiply(g, np.log(2.0)), set())) == []


@together("name", OPS)
def test_rules_of_movement_hold_no_floating_value(name):
    """What only moves elements needs shapes and indices, never the elements."""
    op = OPS[name]
    held = {r.source for rule in op.rules if rule for r in rule.residuals if r.source is not None}
    if op.family == "movement" or name in ("add", "subtract", "negative", "sum", "mean", "cumulative_sum"):
        assert held <= {i for i, rule in enumerate(op.rules) if rule is None}


# Engines ------------------------------------------------------------------------------------------


def test_inputs_without_a_rule_have_no_slope():
    """Differences to second order in all inputs, those among them through which no gradient flows."""
    check_each(HELD, lambda sample: check_grads(sample, sample.arrays, order=2))


@each_sample([sample for sample in SAMPLES if sample.arrays])
def test_static_equals_dynamic(sample):
    for call in (sample, sample.cast("float32")):
        eager, compiled = (run(engine, call, *call.arrays) for engine in ENGINES)
        assert spec_of(compiled) == spec_of(eager)
        np.testing.assert_array_equal(compiled, eager)
    rearranged = static.compile(call, *call.arrays)(*call.arrays)  # with every pass there is
    np.testing.assert_allclose(rearranged, eager, rtol=1e-6, atol=1e-6)


@each_sample(DIFFERENTIABLE)
def test_static_gradients_equal_dynamic_ones(sample):
    call = sample.cast("float32")

    def loss(*floats):
        arrays = dict(enumerate(call.arrays)) | dict(zip(call.differentiable, floats, strict=True))
        return graphs.sum(call(*arrays.values()))

    floats = [call.arrays[i] for i in call.differentiable]
    eager, compiled = (gradients(engine, loss, *floats) for engine in ENGINES)
    for e, c, array in zip(eager, compiled, floats, strict=True):
        assert spec_of(e) == spec_of(c) == spec_of(array)
        np.testing.assert_allclose(c, e, rtol=1e-6, atol=1e-6)
