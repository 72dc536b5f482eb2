"""Made-up results files: what a claim would be judged by, with the numbers that a test wants."""

import json
from random import Random

from compare import claims
from compare.claims import get
from tests.helpers.records import typed

LABELS = {"supported", "refuted", "depends", "proxy only", "inconclusive", "not measured yet"}
KEYS = {
    "claim", "title", "statement", "opposite", "verdict", "effect", "interval", "regimes", "measured", "rule",
    "strongest", "reasons", "literature", "not_tested",
}  # fmt: skip
BASE = 1e-4
"""Seconds a made-up step takes."""
PEAKS = {"small": 1000, "medium": 200_000, "large": 4_000_000}
"""Bytes that a step of each size reaches: one for each regime of size."""
SIZES = tuple(PEAKS)
LENGTHS = [3, 5, 8, 13, 21, 34]


def verdict(claim, records):
    found = get(claim).judge(typed(records)).to_dict()
    assert set(found) == KEYS
    assert found["verdict"] in LABELS
    json.dumps(found, allow_nan=False)
    return found


def judge(records, **options):
    return [found.to_dict() for found in claims.judge(typed(records), **options)]


def said(found, words):
    return any(words in reason for reason in found["reasons"])


def regime(found, name):
    return next(r for r in found["regimes"] if r["name"] == name)


def parity(workload, modes, size="small", **status):
    checked = {
        mode: {
            "status": status.get(mode.replace("-", "_"), "ok"),
            "reason": None,
            "output_error": 1e-7,
            "gradient_error": 1e-7,
            "tolerance": 1e-5,
        }
        for mode in modes
    }
    agree = all(mode["status"] == "ok" for mode in checked.values())
    place = {"kind": "parity", "workload": workload, "size": size}
    return {**place, "agree": agree, "arms": checked, "same_graph": True, "kernel_calls": {}}


def timed(seconds, *, noise=0.002, build=0.0, first=None, seed=0, lengths=None, compiles=0, padding=1.0, whole=True):
    """What a mode measured; with lengths, `first` lists the seconds of each call of the first epoch."""
    random = Random(f"{seconds}/{seed}")
    stream = lengths and [
        {"length": n, "seconds": s, "new": True} for n, s in zip(lengths, first or [seconds] * 99, strict=False)
    ]
    useful = sum(lengths or [100])
    return {
        "status": "ok",
        "reason": None,
        "build": build,
        "first": seconds if first is None or lengths else first,
        "blocks": [seconds * (1 + random.uniform(-noise, noise)) for _ in range(12)],
        "stream": stream,
        "compiles": compiles,
        "compile_seconds": build,
        "useful": useful,
        "computed": round(useful * padding),
        "whole": whole,
    }


def cell(workload, modes, size="small", processes=3):
    """The parity record and the time records of one cell; a mode is keyword arguments of `timed`."""
    records = [parity(workload, modes, size)]
    for process in range(processes):
        measured = {mode: timed(**{"seed": process, **kwargs}) for mode, kwargs in modes.items()}
        records.append({"kind": "time", "workload": workload, "size": size, "process": process, "arms": measured})
    return records


def duel(workload, steady, *, build=0.1, size="small", noise=0.002, processes=3):
    """A cell in which dynamic takes `steady` times as long as static in steady state."""
    modes = {
        "dynamic": {"seconds": BASE * steady, "noise": noise},
        "static-exact": {"seconds": BASE, "build": build, "noise": noise},
    }
    return cell(workload, modes, size, processes)


def race(*steadies, control=1.0, **kwargs):
    records = duel("big_matmul", control) if control else []
    for index, steady in enumerate(steadies):
        records += duel(f"task{index}", steady, **kwargs)
        peak = PEAKS[SIZES[index % 3]]
        records += memory(f"task{index}", peak, peak, size=kwargs.get("size", "small"))[1:]
    return records


def text(*, steady=1.2, epoch=5.0, size="small", **changes):
    """rnn_text: `steady` and `epoch` are static ÷ dynamic; changes are modes to replace."""
    modes = {
        "dynamic": {"seconds": BASE, "lengths": LENGTHS},
        "static-exact": {
            "seconds": BASE * steady,
            "lengths": LENGTHS,
            "first": [BASE * epoch] * 6,
            "compiles": 6,
        },
        "static-pad": {
            "seconds": BASE * steady * 1.5,
            "lengths": LENGTHS,
            "first": [BASE * epoch * 1.5] * 6,
            "compiles": 1,
            "padding": 2.4,
        },
    }
    modes.update(
        {name.replace("_", "-"): {**modes.get(name.replace("_", "-"), {}), **new} for name, new in changes.items()}
    )
    return cell("rnn_text", modes, size)


def memory(workload, dynamic, static, *, structure=0, size="small", mode="static-exact"):
    def held(peak, structure):
        return {
            "status": "ok",
            "reason": None,
            "peak": round(peak),
            "classes": {"structure": round(structure), "plan": 0, "parameters": 10**6},
        }

    modes = {"dynamic": held(dynamic, 0), mode: held(static - structure, structure)}
    record = {"kind": "memory", "workload": workload, "size": size, "arms": modes}
    return [parity(workload, modes, size), record]


def memories(*ratios, share=0.2, sizes=SIZES):
    """Each ratio at each size, which is one of a regime of its own."""
    return [
        record
        for size in sizes
        for index, ratio in enumerate(ratios)
        for record in memory(
            f"task{index}", PEAKS[size], PEAKS[size] * ratio, structure=PEAKS[size] * ratio * share, size=size
        )
    ]


def sweep(passed=400, checks=400, ops=60):
    by_op = {f"op{i}": {"checks": 1, "passed": 1} for i in range(ops)}
    failures = [f"op{i}: wrong" for i in range(checks - passed)]
    return {
        "kind": "gradients",
        "claim": "C2",
        "checks": checks,
        "passed": passed,
        "failures": failures,
        "by_op": by_op,
    }


def models(count=4, **status):
    return [parity(f"task{i}", ("dynamic", "static-exact"), **status) for i in range(count)]


def programs(unchanged=0, rewritten=0, refused=0, edit=0.5, runs=True):
    kinds = ["unchanged"] * unchanged + ["rewritten"] * rewritten + ["refused"] * refused
    rows = [program(f"p{i}", kind, runs, edit) for i, kind in enumerate(kinds)]
    return [{"kind": "program", "claim": "C1", "programs": rows}]


def program(name, static, runs=True, edit=0.5, family="loops", **fields):
    refused = static == "refused"
    return {
        "program": name,
        "family": family,
        "dynamic": runs,
        "static": static,
        "reason": "because" if refused else None,
        "trace": "right" if static == "unchanged" else "refused",
        "trace_reason": None if static == "unchanged" else "because",
        "edit": None if refused else edit,
        "tokens": 40,
        "dynamic_seconds": 2e-4,
        "static_seconds": None if refused else 1e-4,
        "compiles": None if refused else 1,
        "compile_seconds": None if refused else 0.01,
        **fields,
    }


def faults(count, better, family="shape"):
    """Faults that the engine `better` finds in fewer steps; None: both alike."""
    rows = [
        {
            **FOUND,
            "fault": f"{better}{index}",
            "family": family,
            "engine": engine,
            "steps": 1 if engine == better else 2,
            "ops_before": 3,
        }
        for index in range(count)
        for engine in ("dynamic", "static")
    ]
    return [{"kind": "fault", "claim": "C3", "faults": rows}]


def prototypes(count, static=2.0, dynamic=1.0, tokens=(120, 100)):
    engines = {
        engine: {"edit_to_result": [seconds] * 3, "lines": n // 10, "tokens": n}
        for engine, seconds, n in zip(("static", "dynamic"), (static, dynamic), tokens, strict=True)
    }
    tasks = [{"task": f"t{i}", "edit": "a -> b", "engines": engines} for i in range(count)]
    return [{"kind": "prototype", "claim": "C7", "tasks": tasks}]


def caught(static, dynamic, of=20):
    """Faults that can happen, so many of which each engine finds at the trace, and one that cannot happen."""
    rows = [
        {"fault": f"f{i}", "family": "shape", "engine": engine, "when": "trace" if i < found else "forward"}
        for engine, found in (("static", static), ("dynamic", dynamic))
        for i in range(of)
    ]
    never = {"fault": "none", "family": "shape", "engine": "static", "when": "cannot happen"}
    return [{"kind": "fault", "claim": "C3", "faults": [{**FOUND, **row} for row in (*rows, never)]}]


FOUND = {
    "detected": True, "names_line": True, "steps": 1, "ops_before": 0, "when": "forward", "tool": "run", "distance": 0,
    "message": "it is wrong",
}  # fmt: skip

BATCHED = "static, padded batches"


def strategy(seconds, *, epoch=1.0, batching="one by one", examples=1, calls=6, noise=0.002, seed=0, **fields):
    """What a strategy took in a process: `seconds` an example once warm, `epoch` times that in the first epoch."""
    random = Random(f"{seconds}/{seed}/{batching}")
    return {
        "status": "ok",
        "reason": None,
        "compilation": "once",
        "padding": "none",
        "batching": batching,
        "error": 1e-7,
        "build": 0.0,
        "stream": [
            {"examples": examples, "seconds": seconds * epoch * examples, "compiled": i == 0} for i in range(calls)
        ],
        "latency": [seconds * examples] * calls,
        "steady": True,
        "blocks": [seconds * (1 + random.uniform(-noise, noise)) for _ in range(12)],
        "compiles": 1,
        "useful": 100,
        "computed": 100,
        "held": 1000,
        **fields,
    }


def lengths(modes, model="rnn_text", name="lines", size="small", processes=6):
    """The records of one table; a mode is keyword arguments of `strategy`, or its whole row where it has a status."""
    return [
        {
            "kind": "lengths",
            "workload": model,
            "size": size,
            "lengths": name,
            "process": process,
            "examples": [3, 5, 8, 13, 21, 34],
            "arms": {
                mode: fields if "status" in fields else strategy(**{"seed": process, **fields})
                for mode, fields in modes.items()
            },
        }
        for process in range(processes)
    ]


def grid(ratios, processes=4, build=0.0, noise=0.001, status="ok"):
    """The times of a crossover map: how many times static's time dynamic takes, by (ops, depth, elements)."""

    def row(place, ratio, process):
        random = Random(f"{place}/{process}")
        modes = {
            mode: {
                "build": build if mode != "dynamic" else 0.0,
                "first": seconds,
                "steady": True,
                "blocks": [seconds * (1 + random.uniform(-noise, noise)) for _ in range(5)],
            }
            for mode, seconds in (("dynamic", BASE * ratio), ("static-exact", BASE))
        }
        head = dict(zip(("ops", "depth", "elements"), place, strict=True))
        return {**head, "status": status, "reason": None, "arms": modes}

    return [
        {
            "kind": "crossover",
            "size": "coarse",
            "process": process,
            "cells": [row(*item, process) for item in ratios.items()],
        }
        for process in range(processes)
    ]


def grid_memory(ratios):
    """The bytes of a crossover map: static ÷ dynamic by (ops, depth, elements)."""
    cells = [
        {
            **dict(zip(("ops", "depth", "elements"), place, strict=True)),
            "status": "ok",
            "reason": None,
            "arms": {
                mode: {"status": "ok", "reason": None, "peak": round(1000 * share), "classes": {}}
                for mode, share in (("dynamic", 1), ("static-exact", ratio))
            },
        }
        for place, ratio in ratios.items()
    ]
    return [{"kind": "crossover memory", "size": "coarse", "cells": cells}]


def edits(count, *, dynamic=1.0, static=50.0, rebuilds=(0, 1)):
    cost = {"seconds": 1.0, "compile_seconds": 0.1, "edits": 1}
    engines = {
        "dynamic": {**cost, "rebuild": rebuilds[0], "steps": dynamic},
        "static": {**cost, "rebuild": rebuilds[1], "steps": static},
    }
    right = {"engines": engines, "ways": {}, "agree": True, "difference": 0.0}
    return [{"kind": "edit", "claim": "C8", "edits": [{"edit": f"{static}/{i}", **right} for i in range(count)]}]
