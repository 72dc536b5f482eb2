"""Python's own control flow in a fixed graph: a function is rewritten before it is traced.

`rewrite` turns the source of a function into one whose tests, loops, calls and writes are calls of operators. `stage`
holds these operators: a decision on a known value is Python's, and a decision on a value that only the run knows
becomes control flow of the graph. (D. Moldovan et al., "AutoGraph: imperative-style coding with graph-based
performance", 2018.)
"""

from static.convert.entry import ConversionReport, converted, why
from static.convert.stage import operators  # noqa: F401  (fills in what rewritten code calls)
from static.convert.stage.calls import plain

__all__ = ["ConversionReport", "converted", "plain", "why"]
