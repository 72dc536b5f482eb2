"""C2: the tape of recorded operations gives right gradients."""

from __future__ import annotations

from collections.abc import Sequence

from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.records.cells import Parity, ParityArm
from compare.records.checks import Gradients
from compare.records.kinds import KINDS
from compare.records.record import Records, kind_of, of
from compare.stats import Interval, proportion_interval

MIN_OPS = 40
"""Fewer ops than this are not an op library."""
MIN_WORKLOADS = 3
"""Whole models, on top of single ops, whose gradients were compared with float64."""
MIN_PASS_RATE = 0.98
"""The lower bound of the pass rate must be above this; 189 checks are the fewest that can reach it."""
NAMED = 10
"""How many failures a verdict lists by name."""


def find(records: Records) -> Finding:
    """Supported when every check passes and there are enough; refuted when one fails."""
    sweep, models = _sweep(records), _models(records)
    checks, passed = sweep.checks, sweep.passed
    total, good = checks + len(models), passed + sum(models.values())
    if total == 0:
        return not_measured("gradient checks")
    rate = proportion_interval(good, total)
    lacking = _lacking(len(sweep.by_op), models, rate)
    failures = [*sweep.failures, *sorted(name for name, agrees in models.items() if not agrees)]
    parts = ("single ops", passed, checks), ("whole workloads", sum(models.values()), len(models))
    return Finding(
        _verdict(good == total, not lacking),
        (_counts(good, total, [part for part in parts if part[-1]]), *(lacking if good == total else _named(failures))),
        Effect("gradient checks that pass", rate.estimate, "share"),
        rate,
        tuple(_regime(*part) for part in parts if part[-1]),
    )


def _counts(good: int, total: int, parts: Sequence[tuple[str, int, int]]) -> str:
    """`4,331 of 4,331 checks pass: 4,317 of 4,317 of single ops, 14 of 14 of whole workloads`."""
    of_parts = ", ".join(f"{passed:,} of {checks:,} of {name}" for name, passed, checks in parts)
    return f"{good:,} of {total:,} checks pass" + (f": {of_parts}" if len(parts) > 1 else "")


def _sweep(records: Records) -> Gradients:
    """The checks of single ops; of several records the worst, since repeating checks is no new evidence."""
    none = Gradients("C2", 0, 0, [], {})
    return min(of(records, Gradients), key=lambda r: (r.passed - r.checks, r.checks, repr(r)), default=none)


def _models(records: Records) -> dict[str, bool]:
    """For each workload and size, whether the tape's gradients agree with the float64 reference."""
    agreeing: dict[str, bool] = {}
    for record in of(records, Parity):
        arm = record.arms.get(record.base)
        if arm and arm.status in ("ok", "disagree"):
            name = record.cell.title
            agreeing[name] = agreeing.get(name, True) and _agrees(arm)
    return agreeing


def _agrees(arm: ParityArm) -> bool:
    # an arm may disagree in its outputs alone; that is no wrong gradient
    return arm.status == "ok" or (arm.gradient_error is not None and arm.gradient_error <= arm.tolerance)


def _lacking(ops: int, models: dict[str, bool], rate: Interval) -> tuple[str, ...]:
    workloads = len({name.split(" (")[0] for name in models})
    tests = (
        (ops >= MIN_OPS, f"{ops} ops were checked, {MIN_OPS} are needed"),
        (workloads >= MIN_WORKLOADS, f"{workloads} workloads were checked, {MIN_WORKLOADS} are needed"),
        (rate.low > MIN_PASS_RATE, f"the pass rate may be {rate.low:.3f}; above {MIN_PASS_RATE} is needed"),
    )
    return tuple(reason for met, reason in tests if not met)


def _verdict(all_pass: bool, enough: bool) -> Label:
    if not all_pass:
        return "refuted"
    return "supported" if enough else "inconclusive"


def _named(failures: list[str]) -> tuple[str, ...]:
    hidden = len(failures) - NAMED
    more = (f"and {hidden} more failures",) if hidden > 0 else ()
    return (*(f"fails: {failure}" for failure in failures[:NAMED]), *more)


def _regime(name: str, passed: int, checks: int) -> Regime:
    rate = proportion_interval(passed, checks)
    return Regime(name, "supported" if passed == checks else "refuted", rate.estimate, rate)


CLAIM = Claim(
    id="C2",
    title="Recorded operations give right gradients",
    statement="An engine that records the operations on tensors, and walks the record backwards, gives right "
    "gradients for any Python program.",
    opposite="A tape is wrong in special cases: broadcasting, views, ties, mixed requires_grad, higher order. "
    "Only a graph that is known as a whole can be differentiated safely.",
    measured="Every differentiable op, on every registered sample and every choice of inputs that require gradients. "
    "Tape and static graph are compared with central finite differences in float64, to second order, and with each "
    "other. Then the tape's gradients of every workload are compared with a float64 reference. In a framework, each op "
    "that it has a function for is compared with differences and with the tape, to first order.",
    rule=f"Refuted if any check fails. Supported if all checks pass, on at least {MIN_OPS} ops and "
    f"{MIN_WORKLOADS} workloads, and the lower end of Wilson's 95% interval of the pass rate is above "
    f"{MIN_PASS_RATE}. Otherwise inconclusive.",
    find=find,
    reads=(Gradients, Parity),
    check=KINDS[kind_of(Gradients)],
    literature=("HIPS autograd checks its 117 gradient rules along random directions to second order (its source)",),
    not_tested=(
        "gradients in float16: rounding alone makes them differ from the reference",
        "an engine that shares no rule with these two",
        "programs that change recorded tensors in place",
    ),
)
