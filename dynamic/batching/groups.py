"""Running a group of deferred ops as one op on ordinary tensors, which the tape records as it does any other.

Where results lie: in the order in which they are read first, so that most groups read a run and gather nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby
from operator import attrgetter
from typing import NamedTuple

from dynamic import grad_mode
from dynamic.batching.moves import are_one, gather_runs, locate_runs, part
from dynamic.batching.nodes import DeferredNode, Elements, GroupValues, How, OpSignature, ValueKind
from dynamic.tensor import Tensor
from graphs import dispatch
from graphs.errors import GraphError


class Column(NamedTuple):
    """One input of every op in a group: a tensor with a new first axis, or the one value that all of them share."""

    tensor: Tensor
    stacked: bool


def parts(group: list[DeferredNode]) -> Iterator[list[DeferredNode]]:
    """A group apart by the constants that its ops must share, or that so few differ in that copying would cost more."""
    signature = group[0].signature
    roles = signature.call.roles if signature.call.how is How.ROWS else None
    # Ops that join their inputs share nothing, and have inputs of other kinds, or more of them.
    alike = len(group) > 1 and signature.call.how is not How.JOINED
    for j, kind in enumerate(signature.kinds if alike else ()):
        if kind.shared is kind or kind.parameter or (roles and roles[j]):
            continue
        apart: defaultdict[tuple[GroupValues, int], list[DeferredNode]] = defaultdict(list)
        for node in group:
            apart[node.inputs[j].block, node.inputs[j].start].append(node)
        if len(apart) > 1 and (roles or 2 * len(apart) <= len(group)):
            for part in apart.values():
                yield from parts(part)
            return
    yield group


def run(group: list[DeferredNode]) -> None:
    """Run a group, after which each of its nodes has its block.

    An error names the line of the op that is to blame, and not the one that needed the value.
    """
    call = group[0].signature.call
    try:
        RUNNERS[call.how](group)
    except GraphError:
        if call.how is not How.CELL:
            for node in group:
                blame(call, _values(node), getattr(node, "line", ""))
        raise


def let_go(group: list[DeferredNode]) -> None:
    """Let a group that has run hold nothing of what it has read."""
    for node in group:
        node.inputs = ()


def blame(call: OpSignature, inputs: Sequence[Tensor], line: str) -> None:
    """Run one op on arrays alone, and raise what is wrong with it, if it is this one."""
    arrays = [tensor._data for tensor in inputs]
    try:
        call.op.kernel(*arrays, **call.attrs)
    except dispatch.BROKEN_RULES as error:
        raise dispatch.kernel_error(call.op, arrays, error, line) from None


def _values(node: DeferredNode) -> list[Tensor]:
    kinds = node.signature.kinds
    return [part(run.block, run.start, kind.shape) for run, kind in zip(node.inputs, kinds, strict=True)]


def column_of(runs: list[Elements], kind: ValueKind) -> Column:
    """One input of all ops in a group."""
    if are_one(runs):
        return Column(part(runs[0].block, runs[0].start, kind.shape), stacked=False)
    places = locate_runs(runs, kind.size)
    # Several ops often read the same values in the same order, as the gates of an LSTM do.
    columns = runs[0].level.batch.gathered
    key = places.key(), len(runs), kind, grad_mode.is_grad_enabled()  # of nothing any number is in the same places
    tensor = columns.get(key)
    if tensor is None:
        tensor = columns[key] = gather_runs(places, (len(runs), *kind.shape))
    return Column(tensor, stacked=True)


def _stack_group(group: list[DeferredNode]) -> None:
    signature = group[0].signature
    columns = [column_of([node.inputs[j] for node in group], kind) for j, kind in enumerate(signature.kinds)]
    each = tuple([column.stacked for column in columns])
    result = signature.call.runner(each)([column.tensor for column in columns], len(group))
    size = signature.out.size
    place(group, result, range(0, len(group) * size, size) if any(each) and size else [0] * len(group))


def _rows(group: list[DeferredNode]) -> None:
    call = group[0].signature.call
    inputs = []
    for j, has_rows in enumerate(call.roles or ()):
        runs = [node.inputs[j] for node in group]
        kinds = [node.signature.kinds[j] for node in group]
        inputs.append(_all_rows(runs, kinds, kinds) if has_rows else part(runs[0].block, runs[0].start, kinds[0].shape))
    place(group, call.op.apply(inputs, call.attrs), _starts(group))


def _join_group(group: list[DeferredNode]) -> None:
    runs = [run for node in group for run in node.inputs]
    kinds = [kind for node in group for kind in node.signature.kinds]
    place(group, _all_rows(runs, kinds, [node.signature.out for node in group]), _starts(group))


def _all_rows(runs: list[Elements], kinds: Sequence[ValueKind], rows: Sequence[ValueKind]) -> Tensor:
    """Runs of these kinds one after the other, which are as many rows as values of the kinds `rows` have."""
    shape = (sum([kind.shape[0] for kind in rows]), *rows[0].shape[1:])
    sizes = kinds[0].size if kinds.count(kinds[0]) == len(kinds) else [kind.size for kind in kinds]
    return gather_runs(locate_runs(runs, sizes), shape)


def _starts(group: Sequence[DeferredNode]) -> list[int]:
    return list(accumulate([node.signature.call.out.size for node in group[:-1]], initial=0))


RUNNERS: dict[How, Callable[[list[DeferredNode]], None]] = {
    How.STACKED: _stack_group,
    How.SINGLE: _stack_group,
    How.ROWS: _rows,
    How.JOINED: _join_group,
}


_READ = attrgetter("read")
_PLACES = 1 << 32  # more than the inputs of any group
# Bytes of the cotangents that all readers of a block would make. First derivatives add to one: see `moves`.
_WORTH_CUTTING = 1 << 28


def arrange(groups: list[list[DeferredNode]]) -> None:
    """Order the nodes of each group by the group that reads them first. Groups come in the order in which they run."""
    for number in range(len(groups) - 1, -1, -1):
        group = groups[number]
        group.sort(key=_READ)
        for place, run in enumerate(_group_reads(group), number * _PLACES):
            (run if isinstance(run, DeferredNode) else run.owner).read = place


def _group_reads(group: list[DeferredNode]) -> Iterable[Elements]:
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
