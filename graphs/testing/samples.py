"""Sample calls of every registered op: broadcasting patterns, axes, 0-d, size-1 and zero-size shapes."""

from __future__ import annotations

from graphs import op as registry
from graphs.errors import GraphError
from graphs.testing import movement, reductions
from graphs.testing.effects import EFFECTS
from graphs.testing.elementwise import elementwise
from graphs.testing.indexing import INDEXING
from graphs.testing.linalg import LINALG
from graphs.testing.neural import NEURAL
from graphs.testing.sample import Maker, Sample, Values
from graphs.testing.softmax import SOFTMAX
from graphs.testing.sorting import SORTING

_MAKERS: dict[str, Maker] = {
    **EFFECTS,
    **movement.MOVEMENT,
    **reductions.REDUCTIONS,
    **INDEXING,
    **LINALG,
    **SORTING,
    **NEURAL,
    **SOFTMAX,
}


def samples(op_name: str) -> list[Sample]:
    """Calls of one op, each a `Sample`; the same list every time.

    Elementwise ops and reductions have those of their family; any other op needs an entry of its own.
    Raises GraphError when the op is unknown or has no samples.
    """
    op = registry.get(op_name)
    maker = _MAKERS.get(op_name) or _FAMILIES.get(op.family)
    if maker is None:
        raise GraphError(f"op {op_name!r} has no samples; add some to graphs/testing")
    return [Sample(op, title, args, attrs) for title, args, attrs in maker(op, Values(op_name))]


_FAMILIES: dict[str, Maker] = {"elementwise": elementwise, "reduction": reductions.over_axes}
