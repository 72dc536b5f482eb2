"""Where an answer differs from PyTorch's on purpose: a kind a row, each with its reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.peers.opdb.comparing import ANSWERED, EFFECT, GRADIENT, HISTORY, KIND, RAW, VALUE, Verdict

KINDS_AT_MOST = 36


class Kind(NamedTuple):
    """A difference that stays: its reason, the ops and the verdicts it is about, and what the line must contain."""

    reason: str
    ops: str
    verdicts: tuple[str, ...]
    line: str = ""

    def covers(self, verdict: Verdict) -> bool:
        """Whether a verdict is of this kind."""
        return (
            verdict.name in self.verdicts
            and re.fullmatch(self.ops, verdict.call.op) is not None
            and re.search(self.line, str(verdict)) is not None
        )


KINDS = (
    Kind(
        "which of equal elements is found is free",
        "topk|kthvalue|mode",
        (VALUE,),
        r"(int\d+|bool|float16)\[.* -> item 1: ",
    ),
    Kind("equal elements are in any order unless stable", "(arg)?sort", (VALUE,), r"\[8000\] -> (item 1: )?\["),
    Kind(
        "PyTorch counts the elements of an image of float16 in 16 bits, and reads beside one of more: NaN, infinities",
        r"nn\.functional\.grid_sample",
        (VALUE,),
        r"float16\[2, 3, 345, 456\]",
    ),
    Kind(
        "the gradient of a step is 0; PyTorch lets that of logical_and_ and its like pass, though not that of gt_",
        "logical_(not|and|or|xor)",
        (GRADIENT,),
        r"\(in place, .* -> leaf 0: \[*0\.",
    ),
    Kind(
        "a method takes out= as its function does",
        "masked_select|gather|take|multinomial|bernoulli",
        (ANSWERED,),
        r"\(method, .*\bout=.* PyTorch: TypeError: \w+\(\) (got an unexpected|received an invalid)",
    ),
    Kind(
        "out= is of any dtype that holds the result",
        "gather|multinomial",
        (ANSWERED,),
        r"\(function, .*\bout=.* PyTorch: RuntimeError: .*([Ee]xpect\w* (out tensor to have dtype|Long tensor out))",
    ),
    Kind(
        "a number stands for a tensor beside one, element by element",
        "rsub|clamp_max|clamp_min|atan2|copysign|eq|ne|lt|le|gt|ge|f?max(imum)?|f?min(imum)?|fmod|remainder|logaddexp|"
        "logical_(and|or|xor)|heaviside|lcm|gcd|isclose|igammac?|hypot|nextafter|bitwise_\\w+",
        (ANSWERED,),
        r"error, \d\): (int64\[3\]=\[.*\], 2|2, int64\[3\]=\[.*\]) -> .*(must be Tensor, not|got \(int, Tensor)",
    ),
    Kind(
        "tensors of any layout are taken; PyTorch asks for those that lie in a row",
        r"nn\.functional\.(max_unpool\dd|nll_loss)|take_along_dim|view_as_complex|as_strided_scatter",
        (ANSWERED,),
        r"turned\).*PyTorch: RuntimeError: .*(view size is not compatible|stride 1|is_contiguous|must be contiguous)",
    ),
    Kind(
        "what is replaced has no slope; PyTorch gives it the gradient of the result, and what stays none",
        "as_strided_scatter",
        (GRADIENT,),
        "leaf 0",
    ),
    Kind(
        "the running mean and variance are one tensor, at times the weight too, which is written to while it is read",
        r"nn\.functional\.(instance|batch)_norm",
        (EFFECT, VALUE),
        r"shared\)",
    ),
    Kind(
        "what stands for the factor is no triangle, where it is the other operand",
        "cholesky_solve",
        (GRADIENT,),
        "shared",
    ),
    Kind(
        "a row is at distance 0 from itself; PyTorch's way by a product of matrices leaves rounding there",
        "cdist",
        (VALUE,),
        r"shared\).*'use_mm_for_euclid_dist' -> \[+ 0\.",
    ),
    Kind("the boundaries are what is looked for, and in no order", "bucketize", (VALUE,), r"shared\)"),
    Kind("it is computed in float64, and rounded; PyTorch loses digits of float32", "matrix_exp", (VALUE,), "float32"),
    Kind(
        "there is a gradient where PyTorch has none",
        r"linalg\.lstsq|special\.(modified|scaled_modified)_bessel_\w+",
        (HISTORY,),
    ),
    Kind(
        "a comparison has no slope, and gives a tensor no history; PyTorch's, in place, is zeros for the other operand",
        "eq|ne|lt|le|gt|ge",
        (HISTORY,),
        r"in place, .* -> requires_grad False for True",
    ),
    Kind(
        "beside 0 the slope of 0 is 0; PyTorch multiplies 0 by an infinity",
        r"hypot|xlogy|special\.xlog1py",
        (GRADIENT,),
        r"float64\[256\]",
    ),
    Kind("below -1000 a recurrence takes too many steps: NaN", r"(special\.)?polygamma", (VALUE,), "n=4"),
    Kind(
        "NaN below -1000, where a recurrence takes too many steps, and 0 far out, where PyTorch's is NaN",
        r"special\.zeta",
        (VALUE,),
        r"float\d\d\[(9|100)\], float\d\d\[(9|100)\]",
    ),
    Kind("the slope at NaN is NaN; PyTorch's is that at 0", r"special\.i1e?", (GRADIENT,), r"float64\[(9|128, 128)\]"),
    Kind(
        "of an index that comes twice one element is copied, which alone has a gradient",
        "index_copy",
        (GRADIENT,),
        r"int64\[5\]=\[0, 0, 0, 0, 0\]",
    ),
    Kind("what is computed of NaN is NaN; PyTorch looks for infinities first", "igammac?", (VALUE,), r"float\d\d\[9\]"),
    Kind(
        "the slope at NaN is 1; PyTorch's is another where it computes many elements at once",
        r"nn\.functional\.(elu|celu|selu|softshrink|hardshrink|hardtanh|relu6)",
        (GRADIENT,),
        r"float64\[(9|128, 128)\]",
    ),
    Kind(
        "the slope at an infinity is 1 or -1; PyTorch divides by it",
        "copysign",
        (GRADIENT,),
        r"float64\[9\], float64\[9\] -> leaf 0: .* for \[nan,",
    ),
    Kind(
        "the gradient is that among all matrices, as without hermitian; PyTorch's goes through eigh",
        r"linalg\.pinv",
        (GRADIENT,),
        "hermitian=True",
    ),
    Kind(
        "a module of PyTorch's among the arguments takes PyTorch's tensors alone",
        r"nn\.functional\.triplet_margin_with_distance_loss",
        (RAW,),
        r"PairwiseDistance\(\).* must be Tensor, not Tensor",
    ),
    Kind(
        "an int is rounded already",
        "round",
        (ANSWERED,),
        r"special\.round.*not implemented for '(Long|Int|Short|Char|Byte)'",
    ),
    Kind(
        "a method of a number is its function",
        ".*",
        (ANSWERED,),
        r"\((\w+, )?(method|function), .*TypeError: descriptor '\w+' for 'torch\._C\.TensorBase' objects doesn't apply",
    ),
    Kind(
        "a number less a tensor is a difference; PyTorch turns it round",
        "__rsub__",
        (GRADIENT,),
        r", \d+(, \w+)?\): [\d.]+, ",
    ),
    Kind("a shape that no view has is a copy, as of reshape", "view(_as)?", (ANSWERED,), "view size is not compatible"),
    Kind(
        "a pole is infinite; PyTorch gives a large number",
        r"(special\.)?polygamma|digamma",
        (VALUE, GRADIENT),
        r"inf.* for .*e\+|\[\d{3}",
    ),
    Kind(
        "far below 0 the slope is -x; PyTorch has a constant there",
        r"special\.log_ndtr",
        (GRADIENT,),
        r"float64\[100\]",
    ),
    Kind(
        "a target of at most 0 has a gradient; PyTorch's is NaN",
        r"nn\.functional\.poisson_nll_loss",
        (GRADIENT,),
        "full=True",
    ),
    Kind("float64 is rounded once; PyTorch goes by float32", "half", (GRADIENT,), "float64"),
    Kind(
        "a pair of float16 is of complex64, as NumPy has no complex number of 32 bits",
        "complex|view_as_complex|polar",
        (KIND,),
        r"(?s)float16\[.*complex64\) for 'a tensor'",
    ),
)


def kind_of(verdict: Verdict) -> Kind | None:
    """The kind that a verdict is of, if any."""
    return next((kind for kind in KINDS if kind.covers(verdict)), None)
