"""What the steps of a scan do apart from the state, done at once: printed before and after."""

import numpy as np

import graphs as g
from static.passes.batching import batch_steps
from tests.helpers.printed import check

PARAMS = {"w": g.TensorSpec((4, 3)), "u": g.TensorSpec((3, 3)), "b": g.TensorSpec((3,))}
XS = g.TensorSpec((5, 2, 4))
STEPS = g.TensorSpec(("T", 2, 4))
W = g.TensorSpec((4, 4))


def rnn(params, xs):
    """The last state of a tanh RNN, as a scan."""
    step = lambda h, x: (g.tanh(x @ params["w"] + h @ params["u"] + params["b"]), ())  # noqa: E731
    return g.scan(step, g.zeros((2, 3), np.float32), xs)[0]


def accumulated(w, xs):
    """The gradient of a weight as a loop makes it: a state that is only added to."""
    step = lambda s, x: ((s[0] + x.T @ g.sin(x @ w), s[1] * 0.5), g.exp(x))  # noqa: E731
    return g.scan(step, (w, w), xs)


def test_the_products_with_the_inputs():
    check(
        batch_steps,
        rnn,
        [PARAMS, XS],
        """
        %4: f32[2,3] = constant(value=<f32[2,3]>, dtype=float32)
        %5: f32[10,4] = reshape(%3, shape=(10, 4))
        %6: f32[10,3] = matmul(%5, %2)
        %7: f32[5,2,3] = reshape(%6, shape=(5, 2, 3))
        %8: f32[5,2,3] = add(%7, %0)
        %9: (f32[2,3]) = scan(%4, %3, %8, %2, %1, %0, carry=1, xs=2, length=5)
          graph body(%0 f32[2,3], %1 f32[2,4], %2 f32[2,3], %3 f32[4,3], %4 f32[3,3], %5 f32[3]) -> f32[2,3]
            %6: f32[2,3] = matmul(%0, %4)
            %7: f32[2,3] = add(%2, %6)
            %8: f32[2,3] = tanh(%7)
            return %8
        %10: f32[2,3] = part(%9, number=0)
        return %10
        """,
    )


def test_any_number_of_steps():
    check(
        batch_steps,
        rnn,
        [PARAMS, STEPS],
        """
        %4: f32[2,3] = constant(value=<f32[2,3]>, dtype=float32)
        %5: f32[2*T,4] = reshape(%3, shape=(2*T, 4))
        %6: f32[2*T,3] = matmul(%5, %2)
        %7: f32[T,2,3] = reshape(%6, shape=(T, 2, 3))
        %8: f32[T,2,3] = add(%7, %0)
        %9: (f32[2,3]) = scan(%4, %3, %8, %2, %1, %0, carry=1, xs=2, length=T)
          graph body(%0 f32[2,3], %1 f32[2,4], %2 f32[2,3], %3 f32[4,3], %4 f32[3,3], %5 f32[3]) -> f32[2,3]
            %6: f32[2,3] = matmul(%0, %4)
            %7: f32[2,3] = add(%2, %6)
            %8: f32[2,3] = tanh(%7)
            return %8
        %10: f32[2,3] = part(%9, number=0)
        return %10
        """,
    )


def test_what_is_only_added_to():
    check(
        batch_steps,
        accumulated,
        [W, XS],
        """
        %2: f32[10,4] = reshape(%1, shape=(10, 4))
        %3: f32[4,10] = permute_dims(%2, axes=(1, 0))
        %4: f32[10,4] = reshape(%1, shape=(10, 4))
        %5: f32[10,4] = matmul(%4, %0)
        %6: f32[5,2,4] = reshape(%5, shape=(5, 2, 4))
        %7: f32[5,2,4] = sin(%6)
        %8: f32[10,4] = reshape(%7, shape=(10, 4))
        %9: f32[4,4] = matmul(%3, %8)
        %10: f32[4,4] = add(%0, %9)
        %11: f32[5,2,4] = exp(%1)
        %12: (f32[4,4], f32[5,2,4]) = scan(%0, %1, %7, %11, %0, carry=1, xs=3, length=5)
          graph body(%0 f32[4,4], %1 f32[2,4], %2 f32[2,4], %3 f32[2,4], %4 f32[4,4]) -> f32[4,4], f32[2,4]
            %5: f32[] = constant(value=0.5, dtype=float32)
            %6: f32[4,4] = multiply(%0, %5)
            return %6, %3
        %13: f32[4,4] = part(%12, number=0)
        %14: f32[5,2,4] = part(%12, number=1)
        return %10, %13, %14
        """,
    )


def test_what_reads_the_state_stays():
    check(batch_steps, lambda xs: g.scan(lambda s, x: (s + x, x * s), xs[0], xs), [XS])
