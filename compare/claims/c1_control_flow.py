"""C1: ordinary Python control flow works in a dynamic graph and is hard to express in a static one.

`compare.instruments.programs` runs the corpus; the rule (`find`) stands here.

The rule was written before the run. Each program is tried (a) unchanged and traced, (b) unchanged and converted, both
on at least 20 arguments, and (c) rewritten by hand; if none of these works, it counts as (d) refused. A program is
hard if the conversion refuses it or gets it wrong, and its rewriting changes more than 10% of its tokens or does not
exist. The share of programs that are hard if they are only traced, which was the rule before conversion existed, is
reported as well. Times are reported, not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import median

from compare import text
from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.records.checks import ProgramRow, Programs
from compare.records.job import KINDS
from compare.records.record import Records, kind_of, records_of
from compare.stats import Interval, geometric_mean, proportion_interval

MIN_PROGRAMS = 40
"""The fewest programs for a verdict: a smaller corpus is a choice of favourites."""
EASY_EDIT = 0.10
"""A rewriting of at most this share of a program's tokens is easy."""
GENEROUS_EDIT = 0.50
"""A looser limit than `EASY_EDIT`, for readers who find that one too strict; the verdict does not use it."""
RUNS = 0.95
"""Dynamic works if it runs at least this share of the programs unchanged."""
ALONE = "all programs, traced alone"
"""The name of the regime in which programs are only traced, which was the rule before conversion existed."""
HARD_MOST, HARD_FEW = 0.50, 0.10
"""Static is hard if the interval of its hard share lies above the first, easy if below the second."""


def find(records: Records) -> Finding:
    """Judge C1: supported if dynamic runs nearly all programs and most are hard for static, refuted if either fails."""
    programs = _programs(records)
    if not programs:
        return not_measured("programs with control flow")
    runs = proportion_interval(sum(p.dynamic for p in programs), len(programs))
    hard, alone = _share(programs, _is_hard), _share(programs, _is_hard_alone)
    verdict: Label = "supported" if hard.low > HARD_MOST else "depends"
    if len(programs) < MIN_PROGRAMS:
        verdict = "inconclusive"
    elif runs.estimate < RUNS or hard.high < HARD_FEW:
        verdict = "refuted"
    share = f"{alone.estimate:.0%} are hard for static"
    if _conversion_rows(programs):
        converted = f"{hard.estimate:.0%} are hard for static if it converts their control flow"
        share = f"{converted}; {share} if it only traces them"
    reasons = (
        f"of {len(programs)} programs {share}",
        f"hard: static refuses a program or gets it wrong, and a rewriting changes over {EASY_EDIT:.0%} of its tokens",
        f"dynamic runs {runs.estimate:.0%} of the programs unchanged",
        *_details(programs),
    )
    return Finding(
        verdict,
        reasons,
        Effect("programs that are hard for static", hard.estimate, "share"),
        hard,
        (
            _regime(ALONE, alone),
            *(
                _regime(family, _share([p for p in programs if p.family == family], _is_hard))
                for family in sorted({p.family for p in programs})
            ),
        ),
    )


def _conversion_rows(programs: list[ProgramRow]) -> list[ProgramRow]:
    """Return the rows of programs that were also converted; frameworks convert only as they compile, so have none."""
    return [p for p in programs if p.convert is not None]


def _programs(records: Records) -> list[ProgramRow]:
    """Return one row for each program: the worst of its measurements, since a repetition is no new evidence."""
    rows_by_name: dict[str, ProgramRow] = {}
    for row in (row for record in records_of(records, Programs) for row in record.programs):
        rows_by_name[row.program] = min(
            rows_by_name.get(row.program, row), row, key=lambda p: (p.dynamic, not _is_hard(p), repr(p))
        )
    return [rows_by_name[name] for name in sorted(rows_by_name)]


def _is_hard(program: ProgramRow) -> bool:
    return program.convert != "right" and _is_hard_alone(program)


def _is_hard_alone(program: ProgramRow) -> bool:
    easy = program.static == "rewritten" and (program.edit or 0.0) <= EASY_EDIT
    return not (easy or program.static == "unchanged")


def _share(programs: list[ProgramRow], holds: Callable[[ProgramRow], bool]) -> Interval:
    return proportion_interval(sum(map(holds, programs)), len(programs))


def _details(programs: list[ProgramRow]) -> Iterator[str]:
    """Yield sentences with the counts behind the shares, the names of failing programs, and the ratio of times."""
    edits = [p.edit or 0.0 for p in programs if p.static == "rewritten"]
    cost = f" (median: {median(edits):.0%} of the tokens change)" if edits else ""
    unchanged, refused = (sum(p.static == kind for p in programs) for kind in ("unchanged", "refused"))
    first = text.count_noun(unchanged, "program")
    how = "traced" if _conversion_rows(programs) else "compiled"
    yield f"{how}, what runs: {first} unchanged, {len(edits)} after a rewriting{cost}, {refused} never"
    beyond = (refused + sum(edit > GENEROUS_EDIT for edit in edits)) / len(programs)
    yield f"{how}: if a change of {GENEROUS_EDIT:.0%} of the tokens still counted as easy, {beyond:.0%} would be hard"
    yield from _conversion_sentences(programs)
    yield from _name_programs("dynamic fails in", (p for p in programs if not p.dynamic))
    yield from _name_programs(
        f"{how} without an error, but wrong for another input", (p for p in programs if p.trace == "wrong")
    )
    yield from _name_programs("no fixed graph gives the same result", (p for p in programs if p.static == "refused"))
    if ratios := [p.static_seconds / p.dynamic_seconds for p in programs if p.dynamic_seconds and p.static_seconds]:
        yield f"static ÷ dynamic in time, once compiled, where both run: {geometric_mean(ratios):.2g}"


def _conversion_sentences(programs: list[ProgramRow]) -> Iterator[str]:
    """Yield sentences on converted programs: how many are right, and their times ÷ those of rewritings by hand."""
    tried = _conversion_rows(programs)
    if not tried:
        return
    right = sum(p.convert == "right" for p in tried)
    least = min(p.inputs or 0 for p in tried)
    yield f"converted: {right} of {len(tried)} programs run unchanged, on {least} inputs or more each"
    yield from _name_programs("converted without an error, but wrong", (p for p in tried if p.convert == "wrong"))
    yield from _name_programs(
        "converted, but failed with an error that is no refusal", (p for p in tried if p.convert == "failed")
    )
    by_hand = [p for p in tried if p.static == "rewritten"]
    calls = [p.convert_seconds / p.static_seconds for p in by_hand if p.convert_seconds and p.static_seconds]
    compiled = [
        p.convert_compile_seconds / p.compile_seconds
        for p in by_hand
        if p.convert_compile_seconds and p.compile_seconds
    ]
    for words, ratios in (("time of a call", calls), ("time to compile", compiled)):
        if ratios:
            shown = f"median {median(ratios):.2f}, at most {max(ratios):.2f}"
            yield f"{words}, converted ÷ rewritten by hand: {shown}, over {text.count_noun(len(ratios), 'program')}"


def _name_programs(words: str, programs: Iterable[ProgramRow]) -> Iterator[str]:
    if names := [p.program for p in programs]:
        yield f"{words}: {', '.join(names)}"


def _regime(name: str, hard: Interval) -> Regime:
    verdict: Label = "supported" if hard.low > HARD_MOST else "inconclusive"
    return Regime(name, "refuted" if hard.high < HARD_MOST else verdict, hard.estimate, hard)


CLAIM = Claim(
    id="C1",
    title="Python control flow works in a dynamic graph and is hard in a static one",
    statement="Branches, loops, break and recursion are ordinary Python in a dynamic graph. In a static "
    "graph the same program must be rewritten in special ops, or cannot be expressed.",
    opposite="A few control-flow ops express nearly every program that people differentiate, and cost a line or two. "
    "Tracing unrolls the other programs. The result is faster, and it is checked before it runs.",
    measured="A corpus of programs: branches, nested loops, break, recursion, convergence loops, "
    "data-dependent shapes, parsers, samplers, training loops, library code. The dynamic engine runs each as plain "
    "Python. The static engine runs it traced, converted, and rewritten by hand. Recorded are: what runs, the share of "
    "tokens that must change, and whether values and gradients are equal. A framework runs the same programs over its "
    "functions: eager, compiled whole, and rewritten in its own control flow.",
    rule=f"A program is hard for static if static refuses it or gets it wrong when converted, and a rewriting by hand "
    f"changes more than {EASY_EDIT:.0%} of its tokens. Refuted if dynamic runs fewer than {RUNS:.0%} of the programs "
    f"unchanged, or if the 95% interval of the share of hard programs lies below {HARD_FEW:.0%}. Supported if that "
    f"interval lies above {HARD_MOST:.0%}. Otherwise depends. Inconclusive with fewer than {MIN_PROGRAMS} programs.",
    find=find,
    reads=(Programs,),
    check=KINDS[kind_of(Programs)],
    literature=(
        "AutoGraph turns Python control flow into graphs as fast as graphs by hand (abstract, arXiv 1810.08061)",
        "control flow inside the graph can be differentiated (abstract, arXiv 1805.01772)",
        "jax.lax.while_loop has no reverse mode (JAX documentation)",
    ),
    not_tested=(
        "conversion by other tools than static's own; a run with --frameworks has AutoGraph and Dynamo",
        "how hard people find a rewriting: the share of changed tokens stands in for it",
        "how often people write each kind of program: the corpus has a few of each family, and the shares depend on it",
        "programs longer than a page: the same rewriting would be a smaller share of their tokens",
        "other rewritings: each program has one, and a shorter one may exist",
        "changes to the callers: where a rewriting takes state as an argument, only the function is counted",
        "results padded to a largest size: if the shape of a result depends on values, the program counts as refused",
        "speed on large arrays: the times come from one process and small arrays; C6 judges speed",
    ),
)
