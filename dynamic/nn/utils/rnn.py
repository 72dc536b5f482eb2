"""Sequences of several lengths, padded or packed: step by step, without what follows the end of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dynamic.creation import tensor
from graphs import ops
from graphs.errors import OptionError, ShapeError, locate
from graphs.frontends.torch.names import guard
from graphs.ops.shapes import shape_of

__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence",
]  # fmt: skip


def pad_sequence(
    sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """f[T, ...] of several lengths -> f[longest, N, ...], or f[N, longest, ...] with batch_first."""
    longest = max(shape_of(sequence)[0] for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - shape_of(sequence)[0]
        border = (missing, 0) if padding_side == "left" else (0, missing)
        padded.append(ops.pad(sequence, [border, *[(0, 0)] * (len(shape_of(sequence)) - 1)], padding_value))
    return ops.stack(padded, axis=0 if batch_first else 1)


class PackedSequence(NamedTuple):
    """f[n, ...] of all sequences, step after step, the longest first; and how many go on in each step.

    `sorted_indices` are the numbers of the sequences in that order, and `unsorted_indices` bring back the first one.
    """

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    def padded(self) -> tuple[Any, Any]:
        """f[T, N, ...], and bool[T, N] that says what lies inside of a sequence; anything stands outside."""
        sizes = np.asarray(self.batch_sizes)
        inside = np.arange(int(sizes[0])) < sizes[:, None]
        places = np.where(inside, np.cumsum(inside).reshape(inside.shape) - 1, 0)
        return self.data[places], inside

    def to(self, *args: Any, **options: Any) -> PackedSequence:
        """The same of another dtype. Raises ValueError for any device but the CPU."""
        return self._replace(data=self.data.to(*args, **options))

    def cpu(self) -> PackedSequence:
        """The sequences themselves."""
        return self


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """f[T, N, ...], or f[N, T, ...] with batch_first, and the N lengths -> the sequences without what is padded.

    Raises ShapeError for another number of lengths, and OptionError for lengths below 1, above T or, unless
    `enforce_sorted` is False, not in descending order.
    """
    padded = ops.moveaxis(input, 0, 1) if batch_first else input
    counts = np.asarray([int(length) for length in lengths], np.int64)
    longest, batch = map(int, shape_of(padded)[:2])
    if len(counts) != batch:
        raise ShapeError(
            locate(f"pack_padded_sequence: {len(counts)} lengths for {batch} sequences; give one for each")
        )
    if counts.min() < 1 or counts.max() > longest:
        raise OptionError(locate(f"pack_padded_sequence: lengths are from 1 to {longest}; leave empty sequences out"))
    order = np.arange(batch) if enforce_sorted else np.argsort(-counts, kind="stable")
    if (np.diff(counts[order]) > 0).any():
        raise OptionError(
            locate("pack_padded_sequence: lengths do not descend; sort them, or give enforce_sorted=False")
        )
    inside = np.arange(longest)[:, None] < counts[order]
    steps, columns = np.nonzero(inside)
    sizes = inside.sum(1)
    numbers = (None, None) if enforce_sorted else (tensor(order), tensor(np.argsort(order)))
    return PackedSequence(padded[steps, order[columns]], tensor(sizes[sizes > 0]), *numbers)


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """f[T, ...] of several lengths -> all of them packed."""
    lengths = [shape_of(sequence)[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """f[T, N, ...], or f[N, T, ...] with batch_first, and the N lengths, in the order before they were packed.

    Raises OptionError for a `total_length` below the longest.
    """
    padded, inside = sequence.padded()
    more = 0 if total_length is None else total_length - len(inside)
    if more < 0:
        raise OptionError(locate(f"pad_packed_sequence: total_length is {len(inside)} or more, not {total_length}"))
    ones = (1,) * (len(shape_of(padded)) - 2)
    padded = ops.where(inside.reshape(*inside.shape, *ones), padded, padding_value)
    padded = ops.pad(padded, [(0, more)] + [(0, 0)] * (len(ones) + 1), padding_value)
    lengths = tensor(inside.sum(0))
    if sequence.unsorted_indices is not None:
        padded, lengths = padded[:, sequence.unsorted_indices], lengths[sequence.unsorted_indices]
    return (ops.moveaxis(padded, 0, 1) if batch_first else padded), lengths


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """f[T, N, ...], or f[N, T, ...] with batch_first -> a list of f[T, ...] of these lengths."""
    rows = padded_sequences if batch_first else ops.moveaxis(padded_sequences, 0, 1)
    return [rows[i, : int(length)] for i, length in enumerate(lengths)]


guard(globals(), __all__)
