"""`python -m tests.static.convert.fuzz --programs 2000 --start 0`: random programs, converted, against plain Python."""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np

import dynamic
from graphs import tree
from graphs.errors import GraphError
from tests.helpers.programs import function
from tests.static.convert import grammar, streaming
from tests.static.convert.outcome import Outcome, outcome
from tests.static.convert.smaller import smaller

TOLERANCE = 1e-6  # a compiled graph may add in another order
REASONS = 12


def attempt(text: str, seed: int) -> Outcome:
    """How a program ends, on those of its inputs where plain Python gives finite numbers; it must have one."""
    f = function(text, {"__name__": "drawn_program"})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        usable = [args for args in grammar.inputs(seed) if finite(f, args)]
        return outcome(f, usable, TOLERANCE)


def finite(f, args) -> bool:
    """Whether the value and the gradient are; what the tape refuses says nothing, and any other error is compared."""
    try:
        result = dynamic.value_and_grad(f)(*args)
    except GraphError:
        return False
    except TypeError as error:  # a tensor put into an array of NumPy, which the tape refuses too
        return "takes no out here" not in str(error)
    except Exception:  # noqa: BLE001  (that it raises is what is compared)
        return True
    return all(np.isfinite(leaf).all() for leaf in tree.leaves(result))


def kind(why: str) -> str:
    """A reason without names, numbers and lines."""
    return re.sub(r"\(program[^)]*\)|'[^']*'|\d+", "", why)[:90]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print each program that ends wrongly, and how many ended how; 1 if one is wrong or crashes."""
    parser = argparse.ArgumentParser(prog="python -m tests.static.convert.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--aliases", action="store_true", help="programs whose array has two names")
    parser.add_argument("--streams", action="store_true", help="programs that take generators")
    parser.add_argument("--show", action="store_true", help="print each program that fails, made smaller")
    told = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    begun = time.perf_counter()
    for seed in range(told.start, told.start + told.programs):
        text = streaming.source(seed) if told.streams else grammar.source(seed, told.aliases)
        found = attempt(text, seed)
        counts[found.status] += 1
        reasons[found.status, kind(found.why)] += 1
        if found.status in ("wrong", "crash"):
            print(f"seed {seed}: {found.status}: {found.why[:300]}", flush=True)
            if told.show:
                print(smaller(text, lambda text, seed=seed: attempt(text, seed), found.status), flush=True)
    for (status, why), count in reasons.most_common(REASONS):
        print(f"{count:6} {status:8} {why}")
    print(", ".join(f"{counts[status]} {status}" for status in ("right", "refused", "wrong", "crash")))
    share, seconds = counts["right"] / told.programs, time.perf_counter() - begun
    print(f"{told.programs} programs, {share:.1%} converted, {seconds:.0f} s")
    return bool(counts["wrong"] + counts["crash"])


if __name__ == "__main__":
    raise SystemExit(main())
