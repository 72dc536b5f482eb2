"""Can padding reach a result? A padded graph beside the unpadded one, followed element by element, without data.

Both graphs are traces of one function, the one at the padded sizes and the other at the true ones. Where they do the
same ops, each value has one in its place, and some places of the padded value are *real*: those that the unpadded value
has too. Each element is marked: *tainted* when it is real and may differ from the unpadded one, or is not real and may
be anything; *known* when it is the same number in every padded call. The padding of a number is tainted, that of a mask
is known to be False.

Every op has a rule that says of which results this holds, given its operands, for all data:

- Op by element: operands must have the same places real. A result is tainted where an operand is, unless something
  known decides: `where` on a known condition, a product with a known 0, `and` with a known False.
- Elements moved: those of both values are numbered, and both kernels tell where they go.
- Reductions: what is not real must be known to be what the op ignores: 0 in a sum, -inf in a maximum.
- A step of a scan that the unpadded scan does not take: the state after it must be, element by element, the state
  before it, and its row is not real.
- A step of a scan that both take, a branch, a while_loop: the two bodies beside each other. Whether both take the same
  branch, or make as many iterations, must not be tainted.
- Numbers and options that are not the same at both sizes, such as what a mean divides by, taint what they reach.
- An op without a rule taints its results if anything of an operand is not real or tainted.

A length argument works as a mask does: an integer that is at most the true size is below every position in the padding,
so that `arange(T) < length` is known to be False there.

This takes 0 * x for 0 (padding of which a function makes NaN or infinity shows as NaN), and numbers which meet a mask's
infinity, or its lowest number, for finite and far smaller: less x these stay what they are, and no x equals them.
"""

from static.padding.marks import Mark, first, padded_argument
from static.padding.pairing import culprit, follow

__all__ = ["Mark", "culprit", "first", "follow", "padded_argument"]
