"""C1: ordinary Python control flow works in a dynamic graph and is hard to express in a static one.

Judged from lines of kind "program", one for each program of the corpus: `family` (branch, loop, recursion,
...), `dynamic` (whether it runs there unchanged, with right gradients), `static` ("unchanged", "rewritten" or
"refused"), and `edit`, the tokens changed by the rewriting as a share of the program's own.
"""

from __future__ import annotations

from compare.claims.base import Claim, Effect, Finding, Label, Record, Records, Regime, not_measured
from compare.stats import Interval, proportion_interval

MIN_PROGRAMS = 40
"""A corpus smaller than this is a list of favourites."""
EASY_EDIT = 0.10
"""A rewriting of at most this share of a program's tokens is easy."""
RUNS = 0.95
"""Dynamic works if it runs at least this share of the programs unchanged."""
HARD_MOST, HARD_FEW = 0.50, 0.10
"""Static is hard if the interval of its hard share lies above the first, easy if below the second."""


def find(records: Records) -> Finding:
    """Supported if dynamic runs nearly all and static is hard for most; refuted if either plainly fails."""
    programs = [r for r in records if r.get("kind") == "program"]
    if not programs:
        return not_measured("programs with control flow")
    runs = proportion_interval(sum(bool(p["dynamic"]) for p in programs), len(programs))
    hard = _hard_share(programs)
    reasons = (
        f"{len(programs)} programs, of which dynamic runs {runs.estimate:.0%} unchanged",
        f"{hard.estimate:.0%} are refused by static or need over {EASY_EDIT:.0%} of their tokens changed",
    )
    return Finding(
        "inconclusive" if len(programs) < MIN_PROGRAMS else _verdict(runs.estimate, hard),
        reasons,
        Effect("programs that are hard for static", hard.estimate, "share"),
        hard,
        tuple(_family(family, programs) for family in sorted({p["family"] for p in programs})),
    )


def _is_hard(program: Record) -> bool:
    easy = program["static"] == "rewritten" and program["edit"] <= EASY_EDIT
    return not (easy or program["static"] == "unchanged")


def _hard_share(programs: list[Record]) -> Interval:
    return proportion_interval(sum(map(_is_hard, programs)), len(programs))


def _verdict(runs: float, hard: Interval) -> Label:
    if runs < RUNS or hard.high < HARD_FEW:
        return "refuted"
    return "supported" if hard.low > HARD_MOST else "depends"


def _family(family: str, programs: list[Record]) -> Regime:
    hard = _hard_share([p for p in programs if p["family"] == family])
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
    "or refused: what runs, the share of tokens that must change, and whether gradients are equal.",
    rule=f"Refuted if dynamic runs fewer than {RUNS:.0%} of the programs unchanged, or the 95% interval of "
    f"the share that is hard for static (refused, or over {EASY_EDIT:.0%} of tokens changed) lies below "
    f"{HARD_FEW:.0%}. Supported if it lies above {HARD_MOST:.0%}. Otherwise depends, by family of "
    f"programs. Inconclusive under {MIN_PROGRAMS} programs.",
    find=find,
    literature=(
        "AutoGraph makes graphs of Python control flow with no loss (abstract, arXiv 1810.08061)",
        "control flow inside the graph can be differentiated (abstract, arXiv 1805.01772)",
        "jax.lax.while_loop has no reverse mode (JAX documentation)",
    ),
    not_tested=(
        "source-to-source translation of Python, as AutoGraph and torch.compile do",
        "how hard people find a rewriting; a share of tokens stands in for it",
    ),
)
