"""Memory: what is counted, and that the classes add up."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peaks
from compare import engines, workloads
from compare.engines.graphduel.steps import GraphStep
from compare.instruments import memory
from compare.instruments.memory import numpy_memory
from graphs.ops import linalg
from static.memory import begin_at
from tests.helpers import fake_workloads

ROOT = Path(__file__).resolve().parents[2]


def test_only_numpy_memory_is_counted_and_the_peak_is_exact():
    with numpy_memory():
        lists = [[i] for i in range(100_000)]
        held = np.ones(1_000_000)
        tracemalloc.reset_peak()
        sum_of_both = held + held
        del sum_of_both
        current, peak = tracemalloc.get_traced_memory()
    assert len(lists) == 100_000
    assert (current, peak) == (8_000_000, 16_000_000)
    assert not tracemalloc.is_tracing()


def test_tracing_twice_is_refused():
    with numpy_memory(), pytest.raises(RuntimeError, match="stop it first"), numpy_memory():
        pass


def test_a_step_of_known_size_has_that_peak(monkeypatch):
    case = fake_workloads.make_stream()

    def step(params, x):
        temporary = np.ones(len(x) * 100_000)
        return temporary.sum(), {"s": np.zeros(1000)}

    monkeypatch.setattr(engines, "step", lambda mode, case: GraphStep(step, case.params, case.examples))
    monkeypatch.setattr(memory, "tape_stats", lambda case, index: (7, 500, 1000))
    row = memory.measure_mode("dynamic", case)
    assert row.peak == pytest.approx(8 * 100_000 * 8, abs=9000)  # the longest example, and its gradients
    assert row.held == pytest.approx(0, abs=2000)
    classes = row.classes
    assert classes["gradients"] == 8000
    assert classes["gradients"] + classes["saved"] + classes["workspace"] == row.peak
    assert (classes["parameters"], classes["structure"], row.nodes) == (4, 500, 7)


@pytest.mark.parametrize(("left", "epochs", "median"), [((64, 64, 0), 3, 64), ((64, 0, 64), 4, 64), ((9, 3, 6), 4, 6)])
def test_epochs_end_once_no_other_can_change_the_median_of_what_they_leave(monkeypatch, left, epochs, median):
    held, readings = 0, [1000]
    for each in left:
        readings.append(readings[-1] + each)
    monkeypatch.setattr(tracemalloc, "get_traced_memory", lambda: (readings[held - 1], 0))

    class Step:
        def epoch(self):
            nonlocal held
            held += 1

    assert (memory.bytes_left_by_epoch(Step()), held) == (median, epochs)


def test_memory_held_between_steps_is_not_in_the_peak(monkeypatch):
    case = fake_workloads.make_tiny()

    def build(mode, case):
        arena = np.ones(10**6)
        return GraphStep(lambda params, x: (arena[0], {"w": params["w"] * 2}), case.params, case.examples)

    monkeypatch.setattr(engines, "step", build)
    monkeypatch.setattr(memory, "tape_stats", lambda case, index: (0, 0, 0))
    row = memory.measure_mode("dynamic", case)
    assert row.held == pytest.approx(8 * 10**6, abs=1000)
    assert row.peak < 1000
    assert row.classes["caches"] == row.held


def test_bytes_are_the_same_in_a_process_that_timed_before():
    case = fake_workloads.make_tiny()
    begin_at(1152)  # as a worker draws it before it times
    row = memory.measure_mode("static-exact", case)
    assert (row.peak, row.held) == (pytest.approx(52, abs=100), pytest.approx(200, abs=100))


GROWTH = """
import numpy as np
from compare import engines, workloads
from compare.engines.graphduel.steps import GraphStep
from compare.instruments import memory
from tests.helpers import fake_workloads

case = fake_workloads.make_tiny()
step = lambda *_: np.ones(64 << 20, np.uint8).sum()
engines.step = lambda mode, case: GraphStep(step, case.params, case.examples)
print(memory.resident_growth("dynamic", case))
"""


@pytest.mark.slow
def test_resident_growth_sees_large_arrays():
    # In a process of its own, as in a run: one that was larger before has memory to spare, and does not grow.
    ran = subprocess.run([sys.executable, "-c", GROWTH], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(ran.stdout.split()[-1]) > 0.9 * (64 << 20)


def test_the_tape_of_a_case_is_counted():
    nodes, structure, saved = memory.tape_stats(fake_workloads.make_tiny(), 0)
    assert nodes >= 3
    assert structure > 0
    assert saved > 0


HELD = {
    "big_matmul": (196_624, 196_768),
    "tiny_mlp": (7_568, 9_796),
    "deep_chain": (140, 356),
    "elementwise_chain": (1_520_012, 1_600_096),
    "mlp_digits": (117_556, 126_636),
    "conv_digits": (172_140, 173_352),
    "rnn_text": (53_944, 281_888),
    "lstm_text": (38_008, 210_268),
    "encoder_text": (219_280, 1_476_468),
    "tree_lstm": (30_976, 114_872),
    "branch_on_sum": (28, 288),
    "early_exit": (137_332, 153_784),
    "moe_digits": (633_032, 1_248_564),
    "fixed_point": (6_984, 14_132),
    "decode_text": (104_756, 173_898),
    "beam_text": (127_292, 182_562),
}
"""The bytes of arrays at the peak of a step, in the dynamic engine and in `static-exact`, at the size "small"."""


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD)
def test_a_step_holds_the_bytes_that_it_held(name, monkeypatch):
    """A change of 5% is told; one that is meant is written down here."""
    monkeypatch.setattr(linalg, "TURNED_ROWS", 16)  # as on a processor without AVX-512
    case = workloads.get(name).case("small")
    for mode, held in zip(("dynamic", "static-exact"), HELD[name], strict=True):
        row = memory.measure_mode(mode, case)
        assert row.peak + row.held == pytest.approx(held, rel=0.05, abs=200), mode


def test_every_workload_has_its_bytes_written_down():
    assert {*HELD} == {*workloads.names()}


def test_a_change_of_bytes_is_told_from_a_twentieth_and_a_kilobyte_on():
    before = {"a": peaks.Bytes(100_000, 50_000), "b": peaks.Bytes(8, 100_000), "c": peaks.Bytes(0, 0)}
    now = {
        "a": peaks.Bytes(104_000, 46_000), "b": peaks.Bytes(900, 104_900), "c": peaks.Bytes(2_048, 0),
        "new": peaks.Bytes(1, 1),
    }  # fmt: skip
    assert peaks.changes(now, before) == {"a": pytest.approx(-0.08), "c": 2048.0}


def test_the_bytes_of_a_workload_are_those_of_the_file():
    now, before = dict(peaks.measured(["tiny_mlp"])), peaks.load()
    assert now.keys() == {name for name in before if name.startswith("tiny_mlp ")}
    assert not peaks.changes(now, before)
    assert {name.partition(" ")[0] for name in before} == set(workloads.names())
