"""Where results lie: in the order in which they are read first, so that most groups read a run and gather nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from operator import attrgetter

from dynamic.batching.memory import part
from dynamic.batching.nodes import DeferredNode, Elements, GroupValues
from dynamic.batching.signatures import How
from dynamic.tensor import Tensor

_READ = attrgetter("read")
_PLACES = 1 << 32  # more than the inputs of any group
# Bytes of the cotangents that all readers of a block would make. First derivatives add to one: see `moves`.
_WORTH_CUTTING = 1 << 28


def arrange(groups: list[list[DeferredNode]]) -> None:
    """Order the nodes of each group by the group that reads them first. Groups come in the order in which they run."""
    for number in range(len(groups) - 1, -1, -1):
        group = groups[number]
        group.sort(key=_READ)
        for place, run in enumerate(_read_by(group), number * _PLACES):
            (run if isinstance(run, DeferredNode) else run.owner).read = place


def _read_by(group: list[DeferredNode]) -> Iterable[Elements]:
    """What a group reads, in the order in which it does: node by node what is joined, else input by input."""
    inputs, signature = [node.inputs for node in group], group[0].signature
    if signature.call.how in (How.JOINED, How.CELL):
        return chain.from_iterable(inputs)
    columns = zip(zip(*inputs, strict=True), signature.kinds, strict=True)
    return chain.from_iterable([column for column, kind in columns if kind.shared is kind])  # no constants


def place(group: list[DeferredNode], result: Tensor, starts: Sequence[int]) -> None:
    """Note where in the result of a group its nodes lie."""
    block = GroupValues(result)
    for node, start in zip(group, starts, strict=True):
        node.block = block
        node.start = start
    if block.size * result.dtype.itemsize * len(group) > _WORTH_CUTTING and starts[-1]:
        pieces = [list(nodes) for _, nodes in groupby(group, key=lambda node: node.read // _PLACES)]
        if len(pieces) * block.size * result.dtype.itemsize > _WORTH_CUTTING:
            _cut(pieces, block, 0)


def _cut(pieces: Sequence[list[DeferredNode]], block: GroupValues, start: int) -> None:
    """A block for each piece, by cutting in halves again and again.

    A derivative that is recorded adds up cotangents as large as the block: one for each reader if all read the block
    itself, but here only one for each halving.
    """
    if len(pieces) == 1:
        for node in pieces[0]:
            node.block = block
            node.start -= start
        return
    half = len(pieces) // 2
    middle = pieces[half][0].start - start
    _cut(pieces[:half], GroupValues(part(block, 0, (middle,))), start)
    _cut(pieces[half:], GroupValues(part(block, middle, (block.size - middle,))), start + middle)


def separate(runs: Sequence[Elements]) -> None:
    """Give nodes that are looked at one by one blocks of their own, where they are many in one large block."""
    together: defaultdict[GroupValues, dict[int, DeferredNode]] = defaultdict(dict)
    for run in runs:
        if isinstance(run, DeferredNode) and run.level.ran:
            together[run.block][run.start] = run
    for block, nodes in together.items():
        if len(nodes) * block.size * block.tensor.dtype.itemsize > _WORTH_CUTTING and len(nodes) > 1:
            _cut([[nodes[start]] for start in sorted(nodes)], block, 0)
