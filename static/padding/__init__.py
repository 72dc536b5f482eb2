"""Can padding reach a result? A padded graph beside the unpadded one, followed element by element, without data.

Both graphs are traces of one function, the one at the padded sizes and the other at the true ones. Where they have the
same ops, each value has a partner in the other graph. Some places of the padded value are *real*: the partner has them
too. Each element is marked: *tainted* when it is real and may differ from the unpadded one, or is not real and may be
anything; *known* when it is the same number in every padded call. Padding of numbers is tainted; padding of a mask is
known to be False.

Every op has a rule that computes the marks of its results from the marks of its operands, valid for all data:

- Op by element: operands must have the same places real. A result is tainted where an operand is, unless something
  known decides: `where` on a known condition, a product with a known 0, `and` with a known False.
- Elements moved: the elements of both values are numbered, and both kernels move the numbers.
- Reductions: an element that is not real must be known to be one that the op ignores: 0 in a sum, -inf in a maximum.
- A step of a scan that the unpadded scan does not take: the state after it must be, element by element, the state
  before it, and its row is not real.
- A step of a scan that both take, a branch, a while_loop: the two bodies beside each other. Whether both take the same
  branch, or make as many iterations, must not be tainted.
- Numbers and options that are not the same at both sizes, such as the divisor of a mean, taint the results that depend
  on them.
- An op without a rule taints its results if anything of an operand is not real or tainted.

A length argument works as a mask does: an integer that is at most the true size is below every position in the padding,
so that `arange(T) < length` is known to be False there.

The proof assumes that 0 * x is 0 (padding that a function turns into NaN or infinity shows as NaN). It also assumes
that numbers which meet a mask's infinity, or its lowest number, are finite and far smaller: x added to or subtracted
from these does not change them, and no x equals them.
"""

from static.padding.marks import Mark, first, padded_argument
from static.padding.pairing import culprit, follow

__all__ = ["Mark", "culprit", "first", "follow", "padded_argument"]
