"""`torch.special`: PyTorch's special functions, without orthogonal polynomials and most Bessel functions."""

from __future__ import annotations

import functools
from typing import Any

from graphs import ops
from graphs import special as functions
from graphs.frontends.torch import arithmetic, reductions
from graphs.frontends.torch.arithmetic import alike, of_op
from graphs.frontends.torch.names import guard
from graphs.frontends.torch.words import floats

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln",
    "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0",
    "modified_bessel_i1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip

of_floats = functools.partial(of_op, takes="floats")
entr, erf, erfc, erfinv, erfcx = map(of_floats, (ops.entr, ops.erf, ops.erfc, ops.erfinv, ops.erfcx))
exp2, expm1, log1p = arithmetic.exp2, of_floats(ops.expm1), of_floats(ops.log1p)
gammaln = of_floats(ops.gammaln)
digamma = psi = arithmetic.digamma
polygamma = arithmetic.polygamma
gammainc, gammaincc, zeta = map(of_floats, (ops.gammainc, ops.gammaincc, ops.zeta))
i0, i0e, i1, i1e = map(of_floats, (ops.i0, ops.i0e, ops.i1, ops.i1e))
modified_bessel_i0, modified_bessel_i1 = i0, i1
expit, logit, sinc, round = of_floats(ops.sigmoid), arithmetic.logit, arithmetic.sinc, arithmetic.round
logsumexp, xlogy = reductions.logsumexp, arithmetic.xlogy


def __getattr__(name: str) -> Any:
    """Raise AttributeError with a replacement."""
    raise AttributeError(f"special has no {name!r}; call scipy.special on x.detach().numpy(), without a gradient")


def ndtr(input: Any) -> Any:
    """The probability that a standard normal number is at most x."""
    return functions.ndtr(floats(input))


def log_ndtr(input: Any) -> Any:
    """log(ndtr(x)), also where ndtr(x) is tiny."""
    return functions.log_ndtr(floats(input))


def ndtri(input: Any) -> Any:
    """The x with ndtr(x) = y."""
    return functions.ndtri(floats(input))


def multigammaln(input: Any, p: int) -> Any:
    """The logarithm of the gamma function of `p` dimensions, for elements above (p - 1) / 2."""
    return functions.multigammaln(floats(input), p)


def xlog1py(input: Any, other: Any) -> Any:
    """`input * log1p(other)`, and 0 where `input` is 0."""
    return functions.xlog1py(*alike(input, other))


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Exponentials over their sum along an axis."""
    return reductions.softmax(input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of the softmax."""
    return reductions.log_softmax(input, dim, dtype)


guard(globals(), __all__)
