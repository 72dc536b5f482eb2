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
    check(
        push_broadcasts,
        lambda s, x: g.broadcast_to(s, (2, 3)) * x,
        [ROW, X],
        """
        %2: f32[2,3] = broadcast_to(%0, shape=(2, 3))
        %3: f32[2,3] = multiply(%2, %1)
        return %3
        """,
        """
        %2: f32[2,3] = multiply(%0, %1)
        return %2
        """,
    )


def test_work_is_done_before_repeating():
    check(
        push_broadcasts,
        lambda s: -(g.broadcast_to(s, (2, 3)) / 2.0),
        [ROW],
        """
        %1: f32[2,3] = broadcast_to(%0, shape=(2, 3))
        %2: f32[] = constant(value=2.0, dtype=float32)
        %3: f32[2,3] = divide(%1, %2)
        %4: f32[2,3] = negative(%3)
        return %4
        """,
        """
        %1: f32[] = constant(value=2.0, dtype=float32)
        %2: f32[3] = divide(%0, %1)
        %3: f32[3] = negative(%2)
        %4: f32[2,3] = broadcast_to(%3, shape=(2, 3))
        return %4
        """,
    )


def test_what_ieee_does_not_define_is_not_moved():
    check(
        push_broadcasts,
        lambda s: g.exp(g.broadcast_to(s, (2, 3))),
        [ROW],
        """
        %1: f32[2,3] = broadcast_to(%0, shape=(2, 3))
        %2: f32[2,3] = exp(%1)
        return %2
        """,
    )


def test_a_power_of_an_array_of_twos_stays():
    check(
        push_broadcasts,
        lambda x: g.pow(x, np.full((2, 3), 2, np.float32)),
        [X],
        """
        %1: f32[2,3] = constant(value=<f32[2,3]>, dtype=float32)
        %2: f32[2,3] = pow(%0, %1)
        return %2
        """,
    )


def test_a_constant_of_one_value_is_a_number():
    check(
        push_broadcasts,
        lambda x: x + np.full((2, 3), 0.25, np.float32),
        [X],
        """
        %1: f32[2,3] = constant(value=<f32[2,3]>, dtype=float32)
        %2: f32[2,3] = add(%0, %1)
        return %2
        """,
        """
        %1: f32[] = constant(value=0.25, dtype=float32)
        %2: f32[2,3] = add(%0, %1)
        return %2
        """,
    )


def test_a_symbolic_array_of_one_value_is_a_number():
    check(
        push_broadcasts,
        lambda x: x * g.full(x.shape, 0.5, np.float32),
        [ROWS],
        """
        %1: f32[B,3] = full(shape=(B, 3), value=0.5, dtype=float32)
        %2: f32[B,3] = multiply(%0, %1)
        return %2
        """,
        """
        %1: f32[] = constant(value=0.5, dtype=float32)
        %2: f32[B,3] = multiply(%0, %1)
        return %2
        """,
    )


def test_the_gradient_of_a_mean():
    check(
        push_broadcasts,
        static.grad(lambda x: g.mean(x * x)),
        [ROWS],
        """
        %1: f32[] = constant(value=1.0, dtype=float32)
        %2: f32[] = constant(value=3*B, dtype=float32)
        %3: f32[] = divide(%1, %2)
        %4: f32[B,3] = broadcast_to(%3, shape=(B, 3))
        %5: f32[B,3] = multiply(%4, %0)
        %6: f32[B,3] = multiply(%4, %0)
        %7: f32[B,3] = add(%5, %6)
        return %7
        """,
        """
        %1: f32[] = constant(value=1.0, dtype=float32)
        %2: f32[] = constant(value=3*B, dtype=float32)
        %3: f32[] = divide(%1, %2)
        %4: f32[B,3] = multiply(%3, %0)
        %5: f32[B,3] = multiply(%3, %0)
        %6: f32[B,3] = add(%4, %5)
        return %6
        """,
    )
