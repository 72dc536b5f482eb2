"""C1: ordinary Python control flow works in a dynamic graph and is hard to express in a static one.

Times are reported, not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.claims.c1_control_flow.schema import ProgramRow, Programs
from compare.records.record import Kind, Records, of
from compare.stats import Interval, geometric_mean, proportion_interval

MIN_PROGRAMS = 40
"""A corpus smaller than this is a list of favourites."""
EASY_EDIT = 0.10
"""A rewriting of at most this share of a program's tokens is easy."""
GENEROUS_EDIT = 0.50
"""What a reader who finds that too strict may take instead; reported, not judged by."""
RUNS = 0.95
"""Dynamic works if it runs at least this share of the programs unchanged."""
HARD_MOST, HARD_FEW = 0.50, 0.10
"""Static is hard if the interval of its hard share lies above the first, easy if below the second."""


def find(records: Records) -> Finding:
    """Supported if dynamic runs nearly all and static is hard for most; refuted if either plainly fails."""
    programs = _programs(records)
    if not programs:
        return not_measured("programs with control flow")
    runs = proportion_interval(sum(p.dynamic for p in programs), len(programs))
    hard = _hard_share(programs)
    reasons = (
        f"{len(programs)} programs, of which dynamic runs {runs.estimate:.0%} unchanged",
        f"{hard.estimate:.0%} are refused by static or need over {EASY_EDIT:.0%} of their tokens changed",
        *_details(programs),
    )
    return Finding(
        "inconclusive" if len(programs) < MIN_PROGRAMS else _verdict(runs.estimate, hard),
        reasons,
        Effect("programs that are hard for static", hard.estimate, "share"),
        hard,
        tuple(_family(family, programs) for family in sorted({p.family for p in programs})),
    )


def _programs(records: Records) -> list[ProgramRow]:
    """Each program once; of several measurements the worst, since repeating one is no new evidence."""
    found: dict[str, ProgramRow] = {}
    for row in (row for record in of(records, Programs) for row in record.programs):
        found[row.program] = min(found.get(row.program, row), row, key=_standing)
    return [found[name] for name in sorted(found)]


def _standing(program: ProgramRow) -> tuple[bool, bool, str]:
    return program.dynamic, not _is_hard(program), repr(program)


def _is_hard(program: ProgramRow) -> bool:
    easy = program.static == "rewritten" and (program.edit or 0.0) <= EASY_EDIT
    return not (easy or program.static == "unchanged")


def _hard_share(programs: list[ProgramRow]) -> Interval:
    return proportion_interval(sum(map(_is_hard, programs)), len(programs))


def _verdict(runs: float, hard: Interval) -> Label:
    if runs < RUNS or hard.high < HARD_FEW:
        return "refuted"
    return "supported" if hard.low > HARD_MOST else "depends"


def _details(programs: list[ProgramRow]) -> Iterator[str]:
    """What stands behind the shares: how many of each kind, which, and how long they take."""
    edits = [p.edit or 0.0 for p in programs if p.static == "rewritten"]
    cost = f" (in the median {median(edits):.0%} of their tokens)" if edits else ""
    unchanged, refused = (sum(p.static == kind for p in programs) for kind in ("unchanged", "refused"))
    yield f"in static {unchanged} run unchanged, {len(edits)} once rewritten{cost}, {refused} not at all"
    beyond = (refused + sum(edit > GENEROUS_EDIT for edit in edits)) / len(programs)
    yield f"if up to {GENEROUS_EDIT:.0%} of the tokens counted as easy, {beyond:.0%} would be hard"
    yield from _named("dynamic fails in", (p for p in programs if not p.dynamic))
    yield from _named(
        "traced without an error, and wrong for another input", (p for p in programs if p.trace == "wrong")
    )
    yield from _named("no fixed graph gives the same", (p for p in programs if p.static == "refused"))
    if ratios := [p.dynamic_seconds / p.static_seconds for p in programs if p.dynamic_seconds and p.static_seconds]:
        yield f"where both run, dynamic takes {geometric_mean(ratios):.2g} times static's time once that is compiled"


def _named(words: str, programs: Iterable[ProgramRow]) -> Iterator[str]:
    if names := [p.program for p in programs]:
        yield f"{words}: {', '.join(names)}"


def _family(family: str, programs: list[ProgramRow]) -> Regime:
    hard = _hard_share([p for p in programs if p.family == family])
    verdict: Label = "supported" if hard.low > HARD_MOST else "inconclusive"
    return Regime(family, "refuted" if hard.high < HARD_MOST else verdict, hard.estimate, hard)


CLAIM = Claim(
    id="C1",
    title="Python control flow works in a dynamic graph and is hard in a static one",
    statement="Branches, loops, break and recursion are ordinary Python in a dynamic graph. In a static "
    "graph the same program must be rewritten in special ops, or cannot be expressed.",
    opposite="A handful of control-flow ops expresses nearly every program that people differentiate, at "
    "the cost of a line or two; tracing unrolls the rest, and the result is faster and checked before it "
    "runs.",
    measured="A corpus of programs (branches, nested loops, break, recursion, convergence loops, "
    "data-dependent shapes), each run as plain Python in the dynamic engine and as static ops, unrolled, "
    "or refused: what runs, the share of tokens that must change, and whether gradients are equal. Of a framework: the "
    "same programs over its functions, eager, compiled whole, and rewritten in its own control flow.",
    rule=f"Refuted if dynamic runs fewer than {RUNS:.0%} of the programs unchanged, or the 95% interval of "
    f"the share that is hard for static (refused, or over {EASY_EDIT:.0%} of tokens changed) lies below "
    f"{HARD_FEW:.0%}. Supported if it lies above {HARD_MOST:.0%}. Otherwise depends, by family of "
    f"programs. Inconclusive under {MIN_PROGRAMS} programs.",
    find=find,
    reads=(Programs,),
    check=Kind(Programs, "compare.claims.c1_control_flow.measure:measure"),
    outside="compare.claims.c1_control_flow.outside:measure",
    literature=(
        "AutoGraph makes graphs of Python control flow with no loss (abstract, arXiv 1810.08061)",
        "control flow inside the graph can be differentiated (abstract, arXiv 1805.01772)",
        "jax.lax.while_loop has no reverse mode (JAX documentation)",
    ),
    not_tested=(
        "source-to-source translation of Python in the static engine; a run with --frameworks has AutoGraph and Dynamo",
        "how hard people find a rewriting; a share of tokens stands in for it",
        "how often people write each kind: the corpus has a few of every family, and the shares depend on that",
        "programs longer than a page, of which the same rewriting is a smaller share of the tokens",
        "other rewritings of a program than one; a shorter one may exist",
        "what callers must change where a rewriting takes state as an argument: only the function is counted",
        "results padded to a largest size: a program whose result has a shape that depends on values counts as refused",
        "speed on large arrays: the times reported are of one process and of small ones, and C6 judges speed",
    ),
)
