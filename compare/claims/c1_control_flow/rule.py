"""C1: ordinary Python control flow works in a dynamic graph and is hard to express in a static one.

The rule stood before the run. Each program is tried (a) unchanged and traced, (b) unchanged and converted, both on at
least 20 arguments, and (c) rewritten by hand; what none of them gives is (d) refused. A program is hard if it is
refused or wrong when converted, and its rewriting changes more than 10% of its tokens, or there is none. The share that
is hard where a program is traced alone, as it was judged before there was a conversion, is told beside that.

Times are reported, not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
ALONE = "all programs, traced alone"
"""The regime of the share that was judged before there was a conversion."""
HARD_MOST, HARD_FEW = 0.50, 0.10
"""Static is hard if the interval of its hard share lies above the first, easy if below the second."""


def find(records: Records) -> Finding:
    """Supported if dynamic runs nearly all and static is hard for most; refuted if either plainly fails."""
    programs = _programs(records)
    if not programs:
        return not_measured("programs with control flow")
    runs = proportion_interval(sum(p.dynamic for p in programs), len(programs))
    hard, alone = _share(programs, _is_hard), _share(programs, _is_hard_alone)
    reasons = (
        f"of {len(programs)} programs {_hard_words(programs, hard, alone)}",
        f"hard is what is refused or wrong, and takes over {EASY_EDIT:.0%} of its tokens to rewrite",
        f"dynamic runs {runs.estimate:.0%} of the {len(programs)} unchanged",
        *_details(programs),
    )
    return Finding(
        "inconclusive" if len(programs) < MIN_PROGRAMS else _verdict(runs.estimate, hard),
        reasons,
        Effect("programs that are hard for static", hard.estimate, "share"),
        hard,
        (_regime(ALONE, alone), *(_family(family, programs) for family in sorted({p.family for p in programs}))),
    )


def _hard_words(programs: list[ProgramRow], hard: Interval, alone: Interval) -> str:
    traced = f"{alone.estimate:.0%} are hard for static traced alone"
    if all(p.convert is None for p in programs):
        return traced
    return f"{hard.estimate:.0%} are hard for static with their control flow converted; {traced}"


def _programs(records: Records) -> list[ProgramRow]:
    """Each program once; of several measurements the worst, since repeating one is no new evidence."""
    found: dict[str, ProgramRow] = {}
    for row in (row for record in of(records, Programs) for row in record.programs):
        found[row.program] = min(found.get(row.program, row), row, key=_standing)
    return [found[name] for name in sorted(found)]


def _standing(program: ProgramRow) -> tuple[bool, bool, str]:
    return program.dynamic, not _is_hard(program), repr(program)


def _is_hard(program: ProgramRow) -> bool:
    return program.convert != "right" and _is_hard_alone(program)


def _is_hard_alone(program: ProgramRow) -> bool:
    easy = program.static == "rewritten" and (program.edit or 0.0) <= EASY_EDIT
    return not (easy or program.static == "unchanged")


def _share(programs: list[ProgramRow], holds: Callable[[ProgramRow], bool]) -> Interval:
    return proportion_interval(sum(map(holds, programs)), len(programs))


def _verdict(runs: float, hard: Interval) -> Label:
    if runs < RUNS or hard.high < HARD_FEW:
        return "refuted"
    return "supported" if hard.low > HARD_MOST else "depends"


def _details(programs: list[ProgramRow]) -> Iterator[str]:
    """What stands behind the shares: how many of each kind, which, and how long they take."""
    edits = [p.edit or 0.0 for p in programs if p.static == "rewritten"]
    cost = f" (in the median {median(edits):.0%} of their tokens)" if edits else ""
    unchanged, refused = (sum(p.static == kind for p in programs) for kind in ("unchanged", "refused"))
    yield f"traced alone {unchanged} run unchanged, {len(edits)} once rewritten{cost}, {refused} not at all"
    beyond = (refused + sum(edit > GENEROUS_EDIT for edit in edits)) / len(programs)
    yield f"traced alone, if up to {GENEROUS_EDIT:.0%} of the tokens counted as easy, {beyond:.0%} would be hard"
    yield from _converted(programs)
    yield from _named("dynamic fails in", (p for p in programs if not p.dynamic))
    yield from _named(
        "traced without an error, and wrong for another input", (p for p in programs if p.trace == "wrong")
    )
    yield from _named("no fixed graph gives the same", (p for p in programs if p.static == "refused"))
    if ratios := [p.dynamic_seconds / p.static_seconds for p in programs if p.dynamic_seconds and p.static_seconds]:
        yield f"where both run, dynamic takes {geometric_mean(ratios):.2g} times static's time once that is compiled"


def _converted(programs: list[ProgramRow]) -> Iterator[str]:
    """How programs fare converted, and what that costs against the same by hand; nothing where none was."""
    tried = [p for p in programs if p.convert is not None]
    if not tried:
        return
    right = sum(p.convert == "right" for p in tried)
    yield f"converted {right} of {len(tried)} run unchanged, on {min(p.inputs or 0 for p in tried)} or more inputs each"
    yield from _named("converted without an error, and wrong", (p for p in tried if p.convert == "wrong"))
    yield from _named(
        "converted, and failed with another error than a refusal", (p for p in tried if p.convert == "failed")
    )
    by_hand = [p for p in tried if p.static == "rewritten"]
    calls = [p.convert_seconds / p.static_seconds for p in by_hand if p.convert_seconds and p.static_seconds]
    compiled = [
        p.convert_compile_seconds / p.compile_seconds
        for p in by_hand
        if p.convert_compile_seconds and p.compile_seconds
    ]
    for words, ratios in (("a call", calls), ("to compile", compiled)):
        if ratios:
            shown = f"in the median {median(ratios):.2f} times, at most {max(ratios):.2f} times"
            yield f"converted against rewritten by hand, {words}: {shown} the seconds, of {len(ratios)} programs"


def _named(words: str, programs: Iterable[ProgramRow]) -> Iterator[str]:
    if names := [p.program for p in programs]:
        yield f"{words}: {', '.join(names)}"


def _family(family: str, programs: list[ProgramRow]) -> Regime:
    return _regime(family, _share([p for p in programs if p.family == family], _is_hard))


def _regime(name: str, hard: Interval) -> Regime:
    verdict: Label = "supported" if hard.low > HARD_MOST else "inconclusive"
    return Regime(name, "refuted" if hard.high < HARD_MOST else verdict, hard.estimate, hard)


CLAIM = Claim(
    id="C1",
    title="Python control flow works in a dynamic graph and is hard in a static one",
    statement="Branches, loops, break and recursion are ordinary Python in a dynamic graph. In a static "
    "graph the same program must be rewritten in special ops, or cannot be expressed.",
    opposite="A handful of control-flow ops expresses nearly every program that people differentiate, at "
    "the cost of a line or two; tracing unrolls the rest, and the result is faster and checked before it "
    "runs.",
    measured="A corpus of programs (branches, nested loops, break, recursion, convergence loops, "
    "data-dependent shapes, parsers, samplers, training loops, library code), each run as plain Python in the dynamic "
    "engine, and in the static one unchanged and traced, unchanged and converted, and rewritten by hand: what runs, "
    "the share of tokens that must change, and whether values and gradients are equal. Of a framework: the same "
    "programs over its functions, eager, compiled whole, and rewritten in its own control flow.",
    rule=f"Refuted if dynamic runs fewer than {RUNS:.0%} of the programs unchanged, or the 95% interval of "
    f"the share that is hard for static (refused or wrong when converted, and over {EASY_EDIT:.0%} of tokens "
    f"changed by hand) lies below {HARD_FEW:.0%}. Supported if it lies above {HARD_MOST:.0%}. Otherwise depends, by "
    f"family of programs. Inconclusive under {MIN_PROGRAMS} programs.",
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
        "conversion by another tool than static's own; a run with --frameworks has AutoGraph and Dynamo",
        "how hard people find a rewriting; a share of tokens stands in for it",
        "how often people write each kind: the corpus has a few of every family, and the shares depend on that",
        "programs longer than a page, of which the same rewriting is a smaller share of the tokens",
        "other rewritings of a program than one; a shorter one may exist",
        "what callers must change where a rewriting takes state as an argument: only the function is counted",
        "results padded to a largest size: a program whose result has a shape that depends on values counts as refused",
        "speed on large arrays: the times reported are of one process and of small ones, and C6 judges speed",
    ),
)
