"""What the compiled loops of `dynamic/loops/batch.c` are lent: the classes of what waits, and who knows more of it."""

from __future__ import annotations

from dynamic.batching import loops
from dynamic.batching.batch import Batch
from dynamic.batching.cells import CellSignature, met, sign
from dynamic.batching.deferred import Deferred
from dynamic.batching.nodes import NEVER, Kind, Level, Node, Part, Several, View
from dynamic.batching.recording import Result
from dynamic.batching.signatures import Bundle, Signature


def connect() -> None:
    """Lend them, where there are compiled loops."""
    if loops.compiled is None:
        return
    loops.compiled.connect_batches(
        deferred=Deferred,
        node=Node,
        several=Several,
        view=View,
        part=Part,
        result=Result,
        batch=Batch,
        signature=Signature,
        cell_signature=CellSignature,
        bundle=Bundle,
        level=Level,
        kind=Kind,
        never=NEVER,
        meet=met,
        sign=sign,
        row_kind=Batch.row_kind,
    )
