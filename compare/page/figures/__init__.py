"""The figures of the page: a module each, whose `draw(summary)` gives a `Drawing`, or None for a run of another kind.

A figure says what a reader should see in it, or why it could not be drawn.
"""

FIGURES = {
    "decision": "answer",
    "time": "C6",
    "ladder": "C6",
    "parts": "C6",
    "crossover": "C6",
    "lengths": "C4",
    "lines": "",
    "memory": "C5",
    "ledger": "C5",
    "parity": "parity",
    "first_calls": "C4",
    "break_even": "C6",
}
"""Each module in the order of the page, with the claim that it stands beside; those of none stand after the claims."""
