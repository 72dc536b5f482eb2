"""Functions of a file of PyTorch's in one process: `python -m tests.compare.own.standing ENGINE FILE [NAME...]`.

The engine is torch, which leaves its numbers in a folder for each function, or graphduel, which then begins with these.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from types import FunctionType

from compare import engines
from compare.own import measure
from compare.plans.comparison import ComparisonPlan
from compare.records.cells import Parity
from compare.records.record import kind_of
from compare.subjects import exchange, origin
from compare.subjects.case import case_of, converting, open_case
from tests.compare.test_harness_frames import frames
from tests.helpers.plans import plan_of

MAKERS = ("net", "of_kind", "scheduled")


def asked(engine: str, file: Path, name: str, folder: Path | None, modes: list[str]) -> ComparisonPlan:
    """What is asked of one of them."""
    place = f"calls_{name}" if hasattr(origin.import_file(file), f"calls_{name}") else ""
    where = str(folder / name) if folder else ""
    stands_in = engine == "graphduel"
    plan = plan_of(engine, f"{file}:{name}", place, modes, numbers=where, processes=0)
    return replace(plan, subject=replace(plan.subject, stands_in=stands_in))


def by_ours(plan: ComparisonPlan) -> dict[str, str]:
    """What the gate says of our modes."""
    function, calls = exchange.program_of(plan.subject, plan.situation)
    case = converting(case_of(function, calls, plan.subject.gradient, None))
    record = measure._gate(plan.job(kind_of(Parity), plan.subject.modes), case, plan)
    step = engines.step("dynamic", case)
    with step.within():
        step.bind(0).run()
        seen = frames(step.bind(0).run)
    return {**{mode: row.reason or row.status for mode, row in record.modes.items()}, "frames": str(seen.total())}


def by_torch(plan: ComparisonPlan) -> dict[str, str]:
    """PyTorch leaves its numbers."""
    from compare.instruments.bench import Bench

    subject, numbers = plan.subject, plan.situation.numbers
    engine = subject.started()
    case = open_case(plan.subject, *origin.load_function(subject.function, subject.inputs))
    bench = Bench.of_function(
        engine,
        subject.base,
        subject.name,
        case.function,
        case.calls,
        subject.argnum,
        checks=True,
        needed=False,
    )
    Path(numbers).mkdir()
    exchange.leave_numbers(numbers, engine, case)
    bench.prepare()
    exchange.leave_expected(numbers, bench)
    return {"eager": "ok"}


def main() -> None:
    """Print what each function came to, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["torch", "graphduel"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--numbers", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.engine == "graphduel":
        exchange.standin.stand_in()
    found = {}
    path = options.file.resolve()
    functions = {k: v for k, v in vars(origin.import_file(path)).items() if isinstance(v, FunctionType)}
    names = [k for k, f in functions.items() if Path(f.__code__.co_filename) == path and k not in (*MAKERS, "_")]
    for name in options.names or names:
        modes = ["eager"] if options.engine == "torch" else ["dynamic", "static"]
        plan = asked(options.engine, options.file, name, options.numbers, modes)
        try:
            found[name] = by_torch(plan) if options.engine == "torch" else by_ours(plan)
        except Exception as error:  # noqa: BLE001  (whatever one of them raises is its result)
            found[name] = {"raised": f"{type(error).__name__}: {error}"}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
