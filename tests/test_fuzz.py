"""A slice of the random programs of `tests.fuzz`; `python -m tests.fuzz --programs 20000` is the long run."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz.__main__ import main
from tests.fuzz.cases import case_of
from tests.fuzz.mix import EVERYTHING
from tests.fuzz.run import WAYS, attempt, ways_of
from tests.fuzz.smaller import smaller
from tests.random_graphs import random_program

BLOCKS = 6


@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_programs_agree_however_they_are_run(block):
    for seed in range(block, 72, BLOCKS):
        counts, failures = attempt(seed)
        assert not failures, f"{failures[0]}\n{smaller(random_program(seed, EVERYTHING), failures[0].way)}"
        assert sum(counts.values()) == len(ways_of(seed))


def test_every_way_comes_up_equally_often():
    assert len(set(Counter(way for seed in range(6 * 7) for way in ways_of(seed)).values())) == 1


def test_programs_hold_every_family_and_every_dtype():
    programs = [random_program(seed, EVERYTHING) for seed in range(400)]
    used = Counter(step.kind.name for program in programs for step in program.steps)
    kinds = {kind.name for family in EVERYTHING.families for kind in family} | {k.name for k in EVERYTHING.broken}
    assert len(set(used) & kinds) > 0.97 * len(kinds)
    dtypes = Counter(x.dtype.name for program in programs for x in program.inputs)
    assert set(dtypes) == set(EVERYTHING.dtypes)
    assert sum(0 in x.shape for program in programs for x in program.inputs) > 10
    assert sum(program.smooth for program in programs) > 80
    assert sum(case_of(seed).refusal is not None for seed in range(400)) > 5


def test_a_failure_is_found_and_made_smaller(monkeypatch):
    def wrong(case):
        assert not any(step.kind.name == "diff" for step in case.program.steps)

    monkeypatch.setitem(WAYS, "tape", wrong)
    seed = next(s for s in range(1000) if "diff(" in str(random_program(s, EVERYTHING)))
    counts, (failure,) = attempt(seed, ["tape", "simplify"])
    assert counts == {("tape", "FAILED"): 1, ("simplify", "agrees"): 1}
    assert str(failure).startswith(f"seed {seed}, tape: AssertionError")
    program = smaller(random_program(seed, EVERYTHING), "tape")
    assert [step.kind.name for step in program.steps].count("diff") == 1
    assert len(program.steps) < 4


def test_a_run_that_was_stopped_goes_on(tmp_path, capsys):
    state = tmp_path / "state.json"
    for programs in (50, 54):
        assert main(["--programs", str(programs), "--way", "eager", "--state", str(state)]) == 0
    assert "54 programs, 54 runs, 0 failures" in capsys.readouterr().out
