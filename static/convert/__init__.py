"""Python's own control flow in a fixed graph: a function is rewritten before it is traced.

`rewrite` turns the source of a function into one whose tests, loops, calls and writes are calls of operators. `stage`
holds these operators: a decision on a known value is Python's, and a decision on a value that only the run knows
becomes control flow of the graph. (D. Moldovan et al., "AutoGraph: imperative-style coding with graph-based
performance", 2018.) The functions that a user calls are here: `converted`, and `why`, its report.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from graphs import tree
from graphs.errors import ControlFlowError
from static.convert.stage import (
    conversion,
    operators,  # noqa: F401  (fills in what rewritten code calls)
)
from static.convert.stage.calls import call, plain
from static.convert.stage.conversion import Conversion, MetFunction
from static.convert.stage.overwriting import Overwriting
from static.convert.stage.places import Region, is_conditional
from static.trace.symbol import converts
from static.trace.tracing import check_readable

__all__ = ["ConversionReport", "converted", "plain", "why"]


class ConversionReport(NamedTuple):
    """The functions that a trace has met."""

    functions: tuple[MetFunction, ...]

    def __str__(self) -> str:
        rows = [
            (function.name, function.place, f"not converted: {function.reason}" if function.reason else "converted")
            for function in self.functions
        ]
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
        return "\n".join(f"{name:{widths[0]}}  {place:{widths[1]}}  {what}" for name, place, what in rows)


_reports: weakref.WeakKeyDictionary[Any, ConversionReport] = weakref.WeakKeyDictionary()


def converted(f: Callable[..., Any], max_rounds: int | None = None) -> Callable[..., Any]:
    """Return the function to trace in place of `f`: its control flow becomes the graph's where values decide.

    Without `max_rounds`, a loop that only the run ends becomes a `while_loop`, whose gradient has no gradient. With
    `max_rounds` it becomes a scan of that many rounds: it has gradients of any order, and room for that many states. A
    round after the end only keeps the state. A run that needs more rounds raises ControlFlowError. Raises
    ControlFlowError, with the user's line and the remedy, for code that no graph can hold.
    """

    @functools.wraps(f)
    def wrapper(*args: Any) -> Any:
        here = Conversion(conversion.packages(f), max_rounds)
        is_inside_a_branch = is_conditional()  # of the enclosing trace, which is not visible inside this one
        try:
            with here, converts(call, conversion.unconverted_reason), Region(is_inside_a_branch) as region:
                return _finish_trace(region, lambda: call(f)(*args))
        finally:
            with contextlib.suppress(TypeError):  # NumPy's own functions are no keys, and have no report
                _reports[f] = ConversionReport(tuple(here.functions.values()))

    return wrapper


def _finish_trace(region: Region, run: Callable[[], Any]) -> Any:
    """Return the result of a trace, and undo its writes. Raises ControlFlowError where it changed a lasting object.

    Raises it too where the result is a tensor that was changed in place under another name.
    """
    try:
        result = run()
        check_readable(tree.leaves(result))
        changed = [write.place.label for write in region.changed() if not isinstance(write.place, Overwriting)]
    finally:
        region.undo()
    if changed:
        raise ControlFlowError(
            f"{', '.join(sorted(set(changed)))} changes and lasts beyond the call, which a graph does not repeat; "
            "pass it as an argument and return it"
        )
    return result


def why(f: Any) -> ConversionReport:
    """Return a report of the last trace of a function with `convert=True`.

    It says what was converted, and what was not, and why. Takes the function, or its jitted form. Raises ValueError
    where nothing has been traced.
    """
    function = getattr(f, "f", f)
    if function not in _reports:
        raise ValueError(
            f"{getattr(function, '__name__', function)} has not been traced with convert=True; call it first"
        )
    return _reports[function]
