"""Where a framework computes: it says that there is no GPU, and names the one that there is in every record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from compare import engines as frameworks
from compare.claims import conditions
from compare.cli.command import graphduel
from compare.engines.torch.adapter import EventClock, allocator
from compare.errors import InputsError
from compare.instruments.rounds import NAME
from compare.own import run
from compare.records import record
from compare.records.cells import Memory, Time
from compare.records.record import DEVICES, Environment, fingerprint, gpu_in_use, machine_differences, records_of
from compare.records.results import unfold
from compare.report.show import HERE
from compare.run.worker import perform
from tests.helpers import toy_framework
from tests.helpers.asked_here import answered_by
from tests.helpers.plans import plan_of


class MadeUpCuda:
    """What is asked of `torch.cuda`: a GPU that does what it is given when it is waited for, and holds bytes."""

    def __init__(self):
        self.milliseconds = self.queued = 0.0
        self.bytes = self.most = self.waited = 0

    def launch(self, milliseconds):
        self.queued += milliseconds

    def allocate(self, count):
        self.bytes += count
        self.most = max(self.most, self.bytes)

    def synchronize(self):
        self.milliseconds, self.queued = self.milliseconds + self.queued, 0.0
        self.waited += 1

    def memory_allocated(self):
        return self.bytes

    def max_memory_allocated(self):
        return self.most

    def reset_peak_memory_stats(self):
        self.most = self.bytes

    def Event(self):
        return MadeUpEvent(self)


class MadeUpEvent:
    def __init__(self, cuda):
        self.cuda, self.at = cuda, None

    def record(self):
        self.at = self.cuda.milliseconds + self.cuda.queued

    def synchronize(self):
        self.cuda.synchronize()

    def elapsed_time(self, end):
        return end.at - self.at


FUNCTION = f"{toy_framework.__file__}:loss"
CALLS = f"{toy_framework.__file__}:calls"
COMMAND = ["compare", FUNCTION, "--inputs", CALLS, "--framework", "toy", "--processes", "0"]


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"toy": "tests.helpers.toy_framework:Toy"})
    monkeypatch.setattr(record, "_gpus", [])
    frameworks.find_engine.cache_clear()
    yield frameworks.find_engine("toy")
    frameworks.find_engine.cache_clear()


def answered(asked, process=0):
    """The records of a process of a plan, by default the first, its times last; and the heading of the result."""
    record = perform(replace(asked.time(asked.subject.modes, process), asked=asked.to_dict()))
    records = unfold(record)
    return records, repr(run.result(asked, records, HERE, record))


def test_without_a_gpu_a_framework_says_so_and_what_to_do(toy):
    with pytest.raises(InputsError, match=r"--device cuda: Toy sees no GPU here; .* or leave --device out"):
        toy.start(0, device="cuda")
    assert (toy.device, gpu_in_use()) == ("cpu", None)
    toy.start(0)
    assert (toy.device, gpu_in_use()) == ("cpu", None)


def test_the_gpu_that_is_used_stands_in_the_environment_of_a_record(toy, monkeypatch):
    monkeypatch.setattr(toy.devices, "gpu", lambda: "A GPU")
    asked = plan_of("toy", FUNCTION, CALLS, ("jit",), device="cuda")
    (*_, record), heading = answered(asked)
    assert toy.device == "cuda"
    assert record.environment.gpu == "A GPU"
    assert "loss in Toy" in heading
    assert " on A GPU: " in heading


def test_the_clock_of_a_gpu_is_its_events_or_on_the_wall(toy, monkeypatch):
    def clocks():
        return {name: plan_of("toy", FUNCTION, CALLS, None, device=name).clock_name for name in DEVICES}

    assert clocks() == {"cpu": NAME, "cuda": "wall"}
    monkeypatch.setattr(toy, "has_events", True)
    assert clocks() == {"cpu": NAME, "cuda": "events"}


def test_the_clock_of_events_adds_up_what_the_gpu_did_and_waits_for_it():
    cuda = MadeUpCuda()
    clock = EventClock(cuda.Event)
    readings = [clock()]
    for milliseconds in (1.5, 0.25, 1e7):  # three hours, in which a float32 of them all would lose the rest
        cuda.launch(milliseconds)
        assert cuda.queued == milliseconds
        readings.append(clock())
        assert cuda.queued == 0
    cuda.launch(0.125)
    assert np.diff([*readings, clock()]).tolist() == [1_500_000, 250_000, 10**13, 125_000]


def test_the_bytes_of_the_allocator_are_those_above_what_was_in_use():
    cuda = MadeUpCuda()
    cuda.allocate(1000)
    counter = allocator(cuda)

    def step():
        cuda.allocate(500)
        cuda.allocate(-300)

    assert counter.name == "allocator"
    assert counter.live() == 1000
    assert counter.peak(step) == 500
    assert counter.live() == 1200
    assert counter.peak(lambda: None) == 0  # what an earlier call reached counts no more
    assert cuda.waited == 2


def test_a_question_about_a_gpu_has_its_events_and_its_bytes(toy, monkeypatch):
    cuda = MadeUpCuda()

    def wait(result):
        cuda.launch(2.0)
        cuda.allocate(4096)
        cuda.allocate(-4096)
        cuda.synchronize()

    monkeypatch.setattr(toy.devices, "gpu", lambda: "A GPU")
    monkeypatch.setattr(toy, "has_events", True)
    monkeypatch.setattr(toy.devices, "clock", lambda: EventClock(cuda.Event))
    monkeypatch.setattr(type(toy.devices), "counter", property(lambda self: allocator(cuda)))
    monkeypatch.setattr(type(toy.devices), "waits", property(lambda self: wait))
    asked = plan_of("toy", FUNCTION, CALLS, None, device="cuda")
    records, heading = answered(asked, None)
    (time,), (memory,) = records_of(records, Time), records_of(records, Memory)
    assert time.clock == "events"
    for row in time.modes.values():
        assert row.blocks
        assert row.blocks == pytest.approx([0.002] * len(row.blocks))
    assert memory.counted == "allocator"
    assert {row.peak for row in memory.modes.values()} == {4096}
    assert "4 KiB" in heading
    assert "Steady seconds are those of the GPU, by its events" in " ".join(conditions.sentences(records))


def test_a_record_of_the_cpu_names_no_gpu():
    asked = plan_of("toy", FUNCTION, CALLS, ("jit",))
    (*_, record), heading = answered(asked)
    assert record.environment.gpu is None
    assert " on A GPU" not in heading


def test_the_command_refuses_a_device_that_is_not_there(monkeypatch):
    answered_by(monkeypatch, lambda job, limit, heard: perform(job))  # a worker does not know the toy
    found = CliRunner().invoke(graphduel, [*COMMAND, "--device", "cuda"])
    assert found.exit_code == InputsError.exit_code
    assert "--device cuda: Toy sees no GPU here" in found.output


@pytest.mark.slow
def test_the_engines_of_ours_have_no_device():
    found = CliRunner().invoke(graphduel, ["compare", FUNCTION, "--device", "cuda"])
    assert found.exit_code == 2
    assert "graphduel runs on the CPU alone; leave --device out" in found.output


def test_machines_with_different_gpus_are_not_pooled():

    one, other = (fingerprint(Environment(gpu=gpu)) for gpu in (None, "A GPU"))
    assert machine_differences(one, other) == ["gpu None and A GPU"]


def test_variables_for_the_cpu_hide_every_gpu_and_those_for_a_gpu_do_not(monkeypatch, tmp_path):
    monkeypatch.undo()
    frameworks.find_engine.cache_clear()
    jax, tensorflow = (frameworks.find_engine(name) for name in ("jax", "tensorflow"))
    assert jax.environment(tmp_path)["JAX_PLATFORMS"] == "cpu"
    assert jax.environment(tmp_path, "cuda")["JAX_PLATFORMS"] == "cuda,cpu"
    assert tensorflow.environment(tmp_path)["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "CUDA_VISIBLE_DEVICES" not in tensorflow.environment(tmp_path, "cuda")
    with pytest.raises(InputsError, match="HIPS autograd runs on the CPU alone; leave --device out"):
        frameworks.find_engine("autograd").start(0, device="cuda")
