"""What a step does, counted op by op as the framework runs it eagerly: the terms that a price is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from msgspec import Struct

Sort = Literal["view", "read", "product", "other"]


class RanOp(Struct, frozen=True):
    """An op that a framework ran.

    Its sort says whether it only looks at memory in another way, hands a value to Python, which may decide by it, or is
    a product, which no compiler fuses. `elements` are those that it makes, `moved` the bytes that it reads and writes,
    and `flops` its multiplications and additions, where it is a product.
    """

    sort: Sort
    elements: int = 0
    moved: int = 0
    flops: int = 0


class Work(Struct, frozen=True):
    """Counts of a step, both passes: ops by sort, and what they make, read and compute.

    `stretches` are the runs of ops without a product between them, which a compiler may make one kernel of. `reads` are
    the values that Python was given: a graph ends there.
    """

    views: int = 0
    reads: int = 0
    products: int = 0
    others: int = 0
    stretches: int = 0
    elements: int = 0
    moved: int = 0
    flops: int = 0

    @property
    def ops(self) -> int:
        """All of them."""
        return self.views + self.products + self.others


def counted(ran: Iterable[RanOp]) -> Work:
    """The counts of what was run, in its order. Elements and bytes are those of ops that can be fused."""
    found = list(ran)
    kernels = [one for one in found if one.sort != "view"]
    others = [one for one in kernels if one.sort == "other"]
    count = Counter(one.sort for one in found)
    return Work(
        views=count["view"],
        reads=count["read"],
        products=count["product"],
        others=len(others),
        stretches=sum(sort == "other" for sort, _ in groupby(kernels, lambda one: one.sort)),
        elements=sum(one.elements for one in others),
        moved=sum(one.moved for one in others),
        flops=sum(one.flops for one in kernels),
    )
