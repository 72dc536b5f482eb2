"""Broadcasting pushed down: printed before and after."""

import numpy as np

import graphs as g
import static
from static.passes.views import push_broadcasts
from tests.helpers.printed import check

X = g.TensorSpec((2, 3))
ROW = g.TensorSpec((3,))
ROWS = g.TensorSpec(("B", 3))


def test_an_op_repeats_its_operand_itself():
    check(push_broadcasts, lambda s, x: g.broadcast_to(s, (2, 3)) * x, [ROW, X], "f32[2,3] multiply(%0, %1)")


def test_work_is_done_before_repeating():
    check(
        push_broadcasts,
        lambda s: -(g.broadcast_to(s, (2, 3)) / 2.0),
        [ROW],
        "f32[2,3] broadcast_to(negative(divide(%0, 2.0)), shape=(2, 3))",
    )


def test_what_ieee_does_not_define_is_not_moved():
    check(push_broadcasts, lambda s: g.exp(g.broadcast_to(s, (2, 3))), [ROW])


def test_a_power_of_an_array_of_twos_stays():
    check(push_broadcasts, lambda x: g.pow(x, np.full((2, 3), 2, np.float32)), [X])


def test_a_constant_of_one_value_is_a_number():
    check(push_broadcasts, lambda x: x + np.full((2, 3), 0.25, np.float32), [X], "f32[2,3] add(%0, 0.25)")


def test_a_symbolic_array_of_one_value_is_a_number():
    check(push_broadcasts, lambda x: x * g.full(x.shape, 0.5, np.float32), [ROWS], "f32[B,3] multiply(%0, 0.5)")


def test_the_gradient_of_a_mean():
    check(
        push_broadcasts,
        static.grad(lambda x: g.mean(x * x)),
        [ROWS],
        """
        v0: f32[] = divide(1.0, 3*B)
        f32[B,3] add(multiply(v0, %0), multiply(v0, %0))
        """,
    )
