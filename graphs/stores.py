"""Whether a tensor is being put into a NumPy array: NumPy asks it for a float, as `float(x)` does, and says no more."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType

REMEDY = "use graphs.stack, graphs.where or graphs.setitem"


def is_stored() -> bool:
    """Whether the caller of the method that asks is a statement like `array[i] = x`, `array.fill(x)`.

    Which of `array[i] = x` and `float(x)` is being run, Python's bytecode tells and nothing else does.
    """
    frame = sys._getframe(2)
    return _stores(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=1024)
def _stores(code: CodeType, offset: int) -> bool:
    steps = list(dis.get_instructions(code))
    step = next(s for s in steps if s.offset == offset)
    if not step.opname.startswith("CALL"):
        return step.opname == "STORE_SUBSCR"
    # What is called begins where the call begins, and ends last of all that does: `array` and then `array.fill`.
    beginning = [s for s in steps if s.opname.startswith("LOAD_") and _start(s) == _start(step)]
    called = max(beginning, key=_end, default=None)
    return called is not None and called.argval in ("fill", "fromiter")


def _start(step: dis.Instruction) -> tuple[int, int]:
    place = step.positions
    return (0, 0) if place is None else (place.lineno or 0, place.col_offset or 0)


def _end(step: dis.Instruction) -> tuple[int, int]:
    place = step.positions
    return (0, 0) if place is None else (place.end_lineno or 0, place.end_col_offset or 0)
