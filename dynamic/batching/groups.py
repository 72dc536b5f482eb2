"""Running a group of deferred ops as one op on ordinary tensors, which the tape records like any other.

Then the order of results: nodes are sorted by their first reader, so that most groups read one run without a gather.
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
    """One input of all ops in a group: stacked on a new first axis, or one value that all ops share."""

    tensor: Tensor
    stacked: bool


def parts(group: list[DeferredNode]) -> Iterator[list[DeferredNode]]:
    """Split a group by constants that its ops must share, or with so few distinct values that a copy costs more."""
    signature = group[0].signature
    roles = signature.call.roles if signature.call.how is How.ROWS else None
    # Ops that join their inputs share no constants, and may differ in the number and kinds of inputs.
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
    """Run a group; then each of its nodes has its block.

    An error names the line of the op that failed, not the line that read the value.
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
    """Drop the inputs of a group that has run, so that their memory can be freed."""
    for node in group:
        node.inputs = ()


def blame(call: OpSignature, inputs: Sequence[Tensor], line: str) -> None:
    """Run one op on arrays alone, and raise its error with the user's line; no error if this op is not to blame."""
    arrays = [tensor._data for tensor in inputs]
    try:
        call.op.kernel(*arrays, **call.attrs)
    except dispatch.BROKEN_RULES as error:
        raise dispatch.kernel_error(call.op, arrays, error, line) from None


def _values(node: DeferredNode) -> list[Tensor]:
    kinds = node.signature.kinds
    return [part(run.block, run.start, kind.shape) for run, kind in zip(node.inputs, kinds, strict=True)]


def column_of(runs: list[Elements], kind: ValueKind) -> Column:
    """The column of one input of all ops in a group."""
    if are_one(runs):
        return Column(part(runs[0].block, runs[0].start, kind.shape), stacked=False)
    places = locate_runs(runs, kind.size)
    # Several ops often read the same values in the same order, as the gates of an LSTM do: gather them once.
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
    """Gather runs of these kinds one after the other; the first axes of the kinds `rows` add up to the rows."""
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
# Bytes of cotangents, if each reader made one as large as the block. First derivatives add into one: see `moves`.
_WORTH_CUTTING = 1 << 28


def arrange(groups: list[list[DeferredNode]]) -> None:
    """Sort the nodes of each group by their first reader. `groups` come in the order in which they run."""
    for number in range(len(groups) - 1, -1, -1):
        group = groups[number]
        group.sort(key=_READ)
        for place, run in enumerate(_group_reads(group), number * _PLACES):
            (run if isinstance(run, DeferredNode) else run.owner).read = place


def _group_reads(group: list[DeferredNode]) -> Iterable[Elements]:
    """The inputs of a group in the order of reading: node by node for joins and cells, else input by input."""
    inputs, signature = [node.inputs for node in group], group[0].signature
    if signature.call.how in (How.JOINED, How.CELL):
        return chain.from_iterable(inputs)
    columns = zip(zip(*inputs, strict=True), signature.kinds, strict=True)
    return chain.from_iterable([column for column, kind in columns if kind.shared is kind])  # no constants


def place(group: list[DeferredNode], result: Tensor, starts: Sequence[int]) -> None:
    """Set the block and start of each node in a group: where its value lies in the group's result."""
    block = GroupValues(result)
    for node, start in zip(group, starts, strict=True):
        node.block = block
        node.start = start
    if block.size * result.dtype.itemsize * len(group) > _WORTH_CUTTING and starts[-1]:
        pieces = [list(nodes) for _, nodes in groupby(group, key=lambda node: node.read // _PLACES)]
        if len(pieces) * block.size * result.dtype.itemsize > _WORTH_CUTTING:
            _cut(pieces, block, 0)


def _cut(pieces: Sequence[list[DeferredNode]], block: GroupValues, start: int) -> None:
    """Give each piece a block of its own, by halving the block again and again.

    A recorded derivative adds up cotangents as large as the block that is read: one for each reader of the whole block,
    but with halving only one for each half.
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
    """Give nodes that will be read one by one blocks of their own, where many lie in one large block."""
    together: defaultdict[GroupValues, dict[int, DeferredNode]] = defaultdict(dict)
    for run in runs:
        if isinstance(run, DeferredNode) and run.level.ran:
            together[run.block][run.start] = run
    for block, nodes in together.items():
        if len(nodes) * block.size * block.tensor.dtype.itemsize > _WORTH_CUTTING and len(nodes) > 1:
            _cut([[nodes[start]] for start in sorted(nodes)], block, 0)
