"""`python -m tests.fuzz --programs 20000 --start 0`: many programs, with the state in a file to go on from."""

from __future__ import annotations

import argparse
import faulthandler
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.run import NAMES, attempt
from tests.helpers.random_graphs import random_program

SAVE_EVERY = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print what failed and how often each way came to each outcome; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--way", action="append", choices=NAMES, help="only these ways, for every program")
    parser.add_argument("--state", type=Path, help="a file to write results to, and to go on from")
    parser.add_argument("--show", action="store_true", help="print each program that fails, made smaller")
    told = parser.parse_args(arguments)
    return Run(told).all()


class Run:
    """A run over seeds, which may have been begun before."""

    def __init__(self, told: argparse.Namespace) -> None:
        self.told = told
        self.next: int = told.start
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failures: list[str] = []
        if told.state and told.state.exists():
            before = json.loads(told.state.read_text())
            self.next, self.failures = before["next"], before["failures"]
            self.counts.update({(way, what): n for way, what, n in before["counts"]})

    def all(self) -> int:
        """Every seed that is left."""
        end, begun, first = self.told.start + self.told.programs, time.perf_counter(), self.next
        while self.next < end:
            self.one(self.next)
            self.next += 1
            if self.next % SAVE_EVERY == 0 or self.next == end:
                self.save()
            if self.next % 500 == 0:
                pace = (self.next - first) / (time.perf_counter() - begun)
                print(
                    f"{self.next - self.told.start} programs, {len(self.failures)} failures, {pace:.1f} a second",
                    flush=True,
                )
        self.tell()
        return bool(self.failures)

    def one(self, seed: int) -> None:
        """One program."""
        counts, failures = attempt(seed, self.told.way)
        self.counts.update(counts)
        for failure in failures:
            self.failures.append(str(failure))
            print(failure, flush=True)
            if self.told.show:
                self.show(seed, failure.way)

    def show(self, seed: int, way: str) -> None:
        """The program, made smaller."""
        from tests.fuzz.mix import EVERYTHING
        from tests.fuzz.smaller import smaller

        if way == "drawing":
            return
        program = random_program(seed, EVERYTHING)
        print(smaller(program, way), flush=True)

    def save(self) -> None:
        """Write the state."""
        if self.told.state:
            counts = [(way, what, n) for (way, what), n in sorted(self.counts.items())]
            self.told.state.write_text(json.dumps({"next": self.next, "failures": self.failures, "counts": counts}))

    def tell(self) -> None:
        """Every way with its outcomes."""
        outcomes = sorted({what for _, what in self.counts})
        print(f"{'way':20}" + "".join(f"{what:>15}" for what in outcomes))
        for way in NAMES:
            print(f"{way:20}" + "".join(f"{self.counts[way, what]:15}" for what in outcomes))
        total = {what: sum(n for (_, one), n in self.counts.items() if one == what) for what in outcomes}
        print(f"{'all':20}" + "".join(f"{total[what]:15}" for what in outcomes))
        print(f"{self.next - self.told.start} programs, {sum(total.values())} runs, {len(self.failures)} failures")


if __name__ == "__main__":
    faulthandler.enable()
    raise SystemExit(main())
