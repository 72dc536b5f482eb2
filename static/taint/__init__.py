"""Can padding reach a result? Followed element by element through a traced graph, without data.

Each element of each value is marked: *tainted* when it may depend on padding, *known* when it is the same number in
every call, *extra* when it is there only because of padding. The padding of a number is tainted, that of a mask is
known to be False. An op on a tainted element is tainted, unless something known decides: `where` on a known
condition, a product with a known 0, `and` with a known False. What is extra must be known to be what a reduction
ignores: 0 in a sum, -inf in a maximum. A length argument works as a mask does: an integer that is at most the true
size is below every position in the padding, so that `arange(T) < length` is known to be False there.

For all data, an element that is not tainted is the same whatever the padding holds. This takes 0 * x for 0 (padding
of which a function makes NaN or infinity shows as NaN), and numbers which meet a mask's infinity, or its lowest
number, for finite and far smaller: less x these stay what they are, and no x equals them. That a function *counts*
what is padded (`x.shape[0]`, `ones(T)`, a step of a loop that no mask undoes) is not seen here.
"""

from static.taint.follow import culprit, follow
from static.taint.marks import Mark, padded

__all__ = ["Mark", "culprit", "follow", "padded"]
