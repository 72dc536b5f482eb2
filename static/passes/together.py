"""What passes that merge work share: several arrays as one, and whether that pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphs import dims
from graphs.dims import Size
from graphs.ir import Node
from graphs.ops import movement
from graphs.ops.slicing import getitem
from static.passes.views import permuted, reshaped, whole_of

CALL = 8192  # a call of a kernel takes about as long as moving that many bytes
TYPICAL = 64  # what a symbolic size is taken to be where its number decides


def typical(size: Size) -> int:
    """A number for a size: itself, or what a symbolic one might be."""
    return dims.evaluate(size, dict.fromkeys(dims.symbols(size), TYPICAL))


def nbytes(node: Node) -> int:
    """The bytes of a value, of typical sizes."""
    return typical(node.spec.nbytes)


def joined(parts: Sequence[Node], axis: int, source: str) -> Node:
    """Matrices one after the other along an axis: a view of what they are parts of, where they are; else a concat."""
    if all(p.op is movement.permute_dims and p.attrs["axes"] == parts[0].attrs["axes"] for p in parts):
        axes = parts[0].attrs["axes"]
        return permuted(joined([p.inputs[0] for p in parts], axes[axis], source), axes, source)
    entries = run_of_entries(parts) if axis == 0 else None
    if entries is not None:
        return reshaped(entries, (dims.product(entries.spec.shape[:2]), *entries.spec.shape[2:]), source)
    whole = whole_of(parts, axis)
    return Node.of(movement.concat, parts, {"axis": axis}, source) if whole is None else whole


def entry_of(node: Node) -> tuple[Node, int] | None:
    """The array and the number t of what is `array[t]`; None for any other node."""
    if node.op is not getitem or not node.attrs["key"]:
        return None
    first, *rest = node.attrs["key"]
    if not isinstance(first, int) or first < 0 or any(entry != slice(None) for entry in rest if entry is not None):
        return None
    return None if None in rest else (node.inputs[0], first)


def run_of_entries(parts: Sequence[Node]) -> Node | None:
    """The array, or the slice of it, whose entries these are, in order; None where they are not."""
    entries = [entry_of(part) for part in parts]
    if entries[0] is None:
        return None
    base, start = entries[0]
    if any(entry is None or entry[0] is not base or entry[1] != start + i for i, entry in enumerate(entries)):
        return None
    return section(base, start, start + len(parts))


def section(base: Node, start: Size, stop: Size) -> Node:
    """`base[start:stop]`; all of it where that is what it is."""
    if dims.same(start, 0) and dims.same(stop, base.spec.shape[0]):
        return base
    key = (slice(start, stop), *[slice(None)] * (base.spec.ndim - 1))
    return Node.of(getitem, [base], {"key": key}, base.source)


def in_order(parts: Sequence[Node], position: Mapping[Node, int]) -> list[int]:
    """The numbers of parts in the order in which they, or what they are views of, were computed."""

    def place(node: Node) -> tuple[int, int]:
        while node.op is movement.permute_dims:
            node = node.inputs[0]
        entry = entry_of(node)
        return (position.get(node, -1), 0) if entry is None else (position.get(entry[0], -1), entry[1])

    return sorted(range(len(parts)), key=lambda i: place(parts[i]))
