"""Sequences of several lengths, padded. Packed sequences are not supported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphs import ops
from graphs.errors import GraphError, locate
from graphs.frontends.torch.names import guard
from graphs.ops.shapes import shape_of

__all__ = ["pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence"]


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


def _refuse_packing(*args: Any, **options: Any) -> Any:
    """Raises GraphError: packed sequences are not supported."""
    raise GraphError(locate("packed sequences are not supported; use pad_sequence, and mask what follows the end"))


pack_padded_sequence = pack_sequence = pad_packed_sequence = _refuse_packing


guard(globals(), __all__)
