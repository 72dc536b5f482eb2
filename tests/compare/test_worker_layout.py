"""Where memory lies is drawn anew for each worker, by the seed of its job, and told in its record."""

import os
import subprocess
import sys
from dataclasses import replace
from random import Random

import numpy as np
import pytest

import graphs as g
import static
from compare.records.job import KINDS, Job, seeded_random
from compare.records.record import Failure
from compare.records.results import to_json
from compare.run import environment, processes, worker
from compare.run.start import LAYOUT
from static import memory
from static.memory import ALIGNMENT
from tests.helpers.fake_run import raw
from tests.helpers.records import typed

JOB = Job("time", "tiny", "small", 0, seed=7)


@pytest.fixture(autouse=True)
def in_place():
    yield
    memory.begin_at(0)
    environment._kept.clear()


def test_a_file_whose_name_is_no_text_has_an_order_and_a_layout_too():
    latin = os.fsdecode(b"caf\xe9.py:loss")
    job = replace(JOB, size=latin)
    assert job.random().random() == job.random().random() != JOB.random().random()
    assert environment.layout_variable(job)[LAYOUT]
    assert seeded_random("tiny").random() == Random("tiny").random()  # all other orders are what they were


@pytest.mark.parametrize("beside", [False, True])
def test_a_clock_that_goes_backwards_is_named_and_no_file_is(monkeypatch, beside):
    job = replace(JOB, modes=("dynamic",))
    wrong = typed(raw(job))
    wrong.modes["dynamic"].blocks = [0.1, -0.1]
    record = wrong if not beside else typed(raw(job))
    record.beside = [to_json(wrong)] if beside else []
    monkeypatch.setattr(worker, "handler", lambda job: lambda: record)
    failed = worker.perform(job)
    assert isinstance(failed, Failure)
    assert "Expected `float` >= 1e-18" in failed.error
    assert "a clock of this machine went backwards" in failed.error
    assert "file" not in failed.error


def test_a_job_has_the_same_layout_in_every_run_and_each_job_another():
    drawn = [environment.layout_variable(replace(JOB, process=n, seed=s))[LAYOUT] for n in range(8) for s in range(8)]
    assert drawn == [
        environment.layout_variable(replace(JOB, process=n, seed=s))[LAYOUT] for n in range(8) for s in range(8)
    ]
    heaps, fillers = zip(*(one.split(":") for one in drawn), strict=True)
    assert len(set(heaps)) > 60
    assert len(set(map(len, fillers))) > 60
    assert all(0 <= int(heap) < environment.MOST_HEAP for heap in heaps)
    assert all(len(filler) < environment.PAGE for filler in fillers)


def test_a_worker_starts_with_its_layout_and_tells_it():
    job = Job("environment", process=3)
    heap, _, filler = environment.layout_variable(job)[LAYOUT].partition(":")
    assert processes.worker_environment(job)[LAYOUT] == f"{heap}:{filler}"
    assert processes.ask(job, 60).environment.layout == (int(heap), len(filler))


def test_a_process_without_one_tells_none(monkeypatch):
    from compare.run import start

    monkeypatch.delenv(LAYOUT, raising=False)
    assert start.layout() is None
    monkeypatch.setenv(LAYOUT, "12:xxx")
    assert start.layout() == (12, 3)


def test_arenas_begin_at_offsets_of_their_own_on_cache_lines_and_give_the_same():
    x, places = np.linspace(-1, 1, 500), set()
    f = static.value_and_grad(lambda x: g.mean(g.exp(x) * g.tanh(x * 2)))
    plain = static.compile(f, x)(x)
    for process in range(6):
        environment.shift_memory(replace(JOB, process=process))
        places.add(_offset())
        arena = memory.allocate(100)
        assert arena.ctypes.data % ALIGNMENT == 0
        assert len(arena) == 100
        for one, other in zip(static.compile(f, x)(x), plain, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(places) > 3
    assert all(0 <= place < environment.PAGE and place % ALIGNMENT == 0 for place in places)


def test_an_arena_begins_on_a_cache_line():
    with pytest.raises(ValueError, match="no multiple of 64"):
        memory.begin_at(100)


def _offset():
    """How far into its block an arena begins, beyond the first cache line."""
    arena = memory.allocate(100)
    return (arena.ctypes.data - arena.base.ctypes.data) // ALIGNMENT * ALIGNMENT


def test_where_bytes_are_counted_arenas_are_as_they_are():
    counted = [name for name, kind in KINDS.items() if kind.counts]
    assert {*counted} == {"memory", "selftest memory", "crossover memory", "ledger", "ladder"}
    for kind in counted:
        environment.shift_memory(replace(JOB, kind=kind))
        assert _offset() == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="how malloc lays out its heap")
def test_arrays_lie_at_other_offsets_within_a_page_where_the_first_block_is_another():
    code = (
        "import sys; kept = bytearray(int(sys.argv[1])); import numpy as np; print(np.empty(9000).ctypes.data % 4096)"
    )

    def offset(heap):
        return subprocess.run([sys.executable, "-c", code, str(heap)], capture_output=True, check=True).stdout

    assert len({offset(heap) for heap in (0, 5_000, 21_111, 33_333, 60_000)}) > 1
