"""Patterns: which nodes fit them, in which order, and what is made."""

import numpy as np
import pytest

import graphs as g
import static
from graphs.ir import Node
from static.passes.rewrite import Rules

X = g.TensorSpec((2, 3))


def root(f, *specs) -> Node:
    return static.trace(f, *specs).outputs[0]


def shown(node: Node | None) -> str:
    """A node as an expression of the names of inputs."""
    if node is None:
        return "None"
    if not node.inputs:
        return str(node.attrs.get("name", node.attrs.get("value")))
    return f"{node.op.name}({', '.join(map(shown, node.inputs))})"


@pytest.mark.parametrize(
    ("pattern", "make", "f", "expected"),
    [
        ("x + -y", "x - y", lambda a, b: a + -b, "subtract(a, b)"),
        ("x + -y", "x - y", lambda a, b: -a + b, "subtract(b, a)"),
        ("add(x, -y)", "x - y", lambda a, b: -a + b, "None"),
        ("x - -y", "x + y", lambda a, b: -a - b, "None"),
        ("x * x", "square(x)", lambda a, b: a * a, "square(a)"),
        ("x * x", "square(x)", lambda a, b: a * b, "None"),
        ("(p := x * s) + p", "x * s * 2", lambda a, b: a * b + a * b, "None"),  # equal, and not one node
        ("x * s + y * s", "(x + y) * s", lambda a, b: a * b + b * b, "multiply(add(a, b), b)"),
        ("x * 2.0", "x + x", lambda a, b: 2 * a, "add(a, a)"),
        ("x * 2.0", "x + x", lambda a, b: 3 * a, "None"),
        ("x + 0", "x", lambda a, b: a + -0.0, "None"),
        ("x + -0.0", "x", lambda a, b: a + -0.0, "a"),
        ("x * y", "y @ x", lambda a, b: a + b, "None"),
        ("add(h := add(x, p := y * s), p)", "x - y", lambda a, b: a + a * b + a * b, "None"),
        ("add(h := add(x, p := y * s), p)", "x - y", lambda a, b: (a + (p := a * b)) + p, "subtract(a, a)"),
    ],
)
def test_a_rule_fits_what_its_pattern_says(pattern, make, f, expected):
    assert shown(Rules((pattern, make))(root(f, X, X))) == expected


def test_every_way_to_fit_is_tried_until_one_may_be():
    rules = Rules(("x * y", "x - y", lambda x: x.op.name == "tanh"))
    assert shown(rules(root(lambda a, b: a * g.tanh(b), X, X))) == "subtract(tanh(b), a)"
    assert rules(root(lambda a, b: a * b, X, X)) is None


def test_functions_name_what_they_look_at():
    rules = Rules(("-(p := x * y)", lambda node, p, y, facts: (node, p, y, facts)))
    node = root(lambda a, b: -(a * b), X, X)
    assert rules(node, "facts") == (node, node.inputs[0], node.inputs[0].inputs[1], "facts")


def test_the_op_of_a_node_keeps_its_attributes():
    node = root(lambda a: g.sum(-a, axis=1), X)
    made = Rules(("sum(-x)", "-sum(x)"))(node)
    assert made.inputs[0].attrs == node.attrs
    np.testing.assert_equal(made.spec.shape, (2,))


def test_an_op_that_nobody_knows_is_refused():
    with pytest.raises(g.GraphError, match="no_such_op"):
        Rules(("no_such_op(x)", "x"))
