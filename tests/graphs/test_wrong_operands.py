"""`infer` looks at every operand: what a kernel refuses when it runs, is refused before, and so in native code too."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import graphs as g
import static
from graphs.errors import GraphError
from graphs.op import Op, registered_ops
from graphs.spec import TupleSpec, spec_of
from tests.helpers.together import check_each, together
from tests.helpers.wrong_operands import OPS, samples_of, variants

# What no spec tells: positions that an axis does not have, and matrices that cannot be solved.
OF_VALUES = re.compile(
    r"out of bounds|an index is out of range|empty axes|too large to convert|singular|not positive definite"
)


def outcome(call: Any) -> Any:
    """What a call gives, or the error that it raises."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:  # noqa: BLE001  (looked at by the tests)
            return error


def compare(op: Op, arrays: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """The spec is that of what the kernel gives; it is refused, as an error of ours, where the kernel refuses."""
    spec = outcome(lambda: op.infer(*map(spec_of, arrays), **attrs))
    given = outcome(lambda: np.asarray(op.kernel(*[np.array(array) for array in arrays], **attrs)))
    if isinstance(spec, Exception):
        assert isinstance(spec, GraphError), repr(spec)
    elif isinstance(given, Exception):
        assert OF_VALUES.search(str(given)), (spec, given)
    else:
        assert (spec.shape, spec.dtype) == (given.shape, given.dtype)


@together("name", OPS, quick=40)
def test_infer_admits_no_operand_that_the_kernel_refuses(name: str) -> None:
    op = registered_ops()[name]
    for sample in samples_of(name):
        inputs, attrs = sample.prepared()
        for _, arrays in variants(tuple(map(np.asarray, inputs))):
            compare(op, arrays, attrs)


@together("name", OPS)
def test_what_a_call_was_prepared_to_is_prepared_to_itself(name: str) -> None:
    """By this `infer` knows that attributes are those of a call of these operands."""
    for sample in samples_of(name):
        inputs, attrs = sample.prepared()
        registered_ops()[name].infer(*map(spec_of, inputs), **attrs)


# Control flow -------------------------------------------------------------------------------------------------------

ROWS, START = np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0, 1, 3)


def scan_rows(x: Any, s: Any) -> Any:
    return g.scan(lambda c, row: (g.tanh(c + row), c * s), s, x)


def repeat_until(x: Any, s: Any) -> Any:
    return g.while_loop(lambda c: g.sum(c) < 9, lambda c: c + g.abs(s) + 1, x[0])


def choose(x: Any, s: Any) -> Any:
    return g.switch(g.astype(g.sum(s), np.int64), [lambda a: a * 2, lambda a: a + s, lambda a: a - 1], x)


def control_nodes() -> list[Any]:
    """The nodes of loops and branches, and of their gradients."""
    functions = [scan_rows, repeat_until, choose]
    functions += [lambda x, s, f=f: static.grad(lambda x, s: g.sum(g.tree.leaves(f(x, s))[0]))(x, s) for f in functions]
    graphs = [static.trace(f, ROWS, START) for f in functions]
    return [node for graph in graphs for node in graph.nodes if node.op.family == "control" and node.op.name != "part"]


def test_loops_and_branches_admit_no_operand_that_their_kernel_refuses() -> None:
    def check(node: Any) -> None:
        specs = [source.spec for source in node.inputs]
        places = [i for i, spec in enumerate(specs) if not isinstance(spec, TupleSpec)]
        arrays = tuple(np.zeros(specs[i].shape, specs[i].dtype) for i in places)
        for what, others in variants(arrays):
            changed = [*specs]
            for i, array in zip(places, others, strict=True):
                changed[i] = spec_of(array)
            found = outcome(lambda changed=changed: node.op.infer(*changed, **node.attrs))
            may_be = node.op.name == "switch" and what.startswith("operand 0") and changed[0].size == 1
            assert may_be or isinstance(found, GraphError), (what, found)

    check_each(control_nodes(), check, lambda node: f"{node.op.name} {node.spec}")


@pytest.mark.parametrize(
    ("name", "option", "wrong"),
    [
        ("scan", "carry", -1), ("scan", "carry", 0), ("scan", "carry", 9), ("scan", "carry", True), ("scan", "xs", 0),
        ("scan", "xs", 2), ("scan", "length", 5), ("scan", "length", 3), ("scan", "length", -1),
        ("scan", "length", 4.0),
        ("scan", "save", 1), ("scan", "reverse", "no"), ("while_loop", "carry", 2), ("while_loop", "carry", -1),
        ("while_loop", "carry", 0), ("while_loop", "save", None), ("switch", "branches", ()),
    ],
)  # fmt: skip
def test_options_of_loops_and_branches_are_those_of_their_operands(name: str, option: str, wrong: Any) -> None:
    node = next(node for node in control_nodes() if node.op.name == name)
    specs = [source.spec for source in node.inputs]
    with pytest.raises((GraphError, LookupError)):
        node.op.infer(*specs, **node.attrs | {option: wrong})
