"""Which tape the dynamic engine ran by, as its records tell: with loops in Python it is another, slower engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from compare.claims.base import INCONCLUSIVE, NOT_MEASURED, Finding
from compare.records.record import Records, Run

OPTION = "--python-tape"
REMEDY = f"graphduel doctor shows how to get that one; {OPTION} judges by this tape"
_RAN = {"compiled": "compiled", "python": "in Python"}


def sentence(records: Records) -> str:
    """`The tape ran compiled.`, in how many records each where they differ, or that the records do not tell."""
    counts = _counted(records)
    if not counts:
        return "These results do not say which tape ran."
    if len(counts) == 1:
        slow = ": ratios to the compiled tape would differ" if counts["python"] else ""
        return f"The tape ran {_RAN[next(iter(counts))]}{slow}."
    parts = (f"{_RAN[tape]} in {count:,} records" for tape, count in sorted(counts.items()))
    return f"The tape ran {' and '.join(parts)}: do not compare these times."


def before(*, python_tape: bool) -> str:
    """What is said before a run whose tape is in Python: what will not be judged by it, and how to have the other."""
    if python_tape:
        return f"The tape runs in Python, which takes longer than the compiled one; {OPTION} judges by this tape."
    return (
        "The compiled tape is missing: C5, C6 and C7 will be measured and not settled, as the tape in Python takes "
        f"longer; {REMEDY}"
    )


def in_python(records: Records) -> str:
    """Where and that the tape ran in Python; empty if it did not."""
    counts = _counted(records)
    share = "" if len(counts) == 1 else f" in {counts['python']:,} of {counts.total():,} records"
    return f"the tape ran in Python{share}" if counts["python"] else ""


def unsettled(where: str, finding: Finding) -> Finding:
    """The finding on a claim that rests on the tape's speed or memory, where it ran in Python: what was measured."""
    if finding.verdict == NOT_MEASURED:
        return finding
    reason = f"the compiled tape is missing: {where}, which takes longer, so that this settles nothing; {REMEDY}"
    regimes = tuple(replace(regime, verdict=INCONCLUSIVE) for regime in finding.regimes)
    return replace(finding, verdict=INCONCLUSIVE, reasons=(reason, *finding.reasons), regimes=regimes)


def warning(where: str) -> str:
    """What is added to the reasons of a claim that rests on it in part."""
    return f"{where}: the times of the dynamic engine are those of that tape, not of the compiled one"


def _counted(records: Records) -> Counter[str]:
    """How many measurements each tape made; the starts of a run count where no measurement tells."""
    tapes = [(isinstance(r, Run), r.environment.tape) for r in records if r.environment and r.environment.tape]
    measured = Counter(tape for start, tape in tapes if not start)
    return Counter[str](measured or (tape for _, tape in tapes))
