"""The figures of the page: a module each, whose `draw(summary)` gives a `Drawing`, or None for a run of another kind.

A figure says what a reader should see in it, or why it could not be drawn.
"""

FIGURES = {
    "decision": ("answer",),
    "samples": ("F1",),
    "time": ("C6",),
    "lines": ("F1",),
    "ladder": ("C6", "F1"),
    "parts": ("C6", "F1"),
    "crossover": ("C6",),
    "lengths": ("C4",),
    "ledger": ("F3", "C5"),
    "memory": ("C5", "F3"),
    "parity": ("parity",),
    "break_even": ("C6", "F2"),
    "first_calls": ("C4", "F2"),
}
"""Each module in the order of the page, with the claims that it stands beside: one of the suite, one of a function.

What stands beside no claim of a page stands after them all.
"""
