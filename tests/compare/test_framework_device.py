"""Where a framework computes: it says that there is no GPU, and names the one that there is in every record."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from compare import engines as frameworks
from compare.cli.command import graphduel
from compare.errors import InputsError
from compare.instruments.time.rounds import NAME
from compare.own import run, workers
from compare.own.question import asked_of
from compare.own.show import HERE
from compare.records import device
from compare.records.record import Environment
from compare.records.results import unfolded
from compare.run.worker import perform
from tests.helpers import toy_framework

FUNCTION = f"{toy_framework.__file__}:loss"
CALLS = f"{toy_framework.__file__}:calls"
COMMAND = ["compare", FUNCTION, "--inputs", CALLS, "--framework", "toy", "--processes", "0"]


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"toy": "tests.helpers.toy_framework:Toy"})
    monkeypatch.setattr(device, "_gpus", [])
    frameworks.named.cache_clear()
    yield frameworks.named("toy")
    frameworks.named.cache_clear()


def answered(asked):
    """What the first process of a question answers, and the heading of the result."""
    record = perform(replace(asked.time_job(asked.arms, 0), asked=asked.to_dict()))
    return record, repr(run.result(asked, unfolded(record), HERE, record))


def test_without_a_gpu_a_framework_says_so_and_what_to_do(toy):
    with pytest.raises(InputsError, match=r"--device cuda: Toy sees no GPU here; .* or leave --device out"):
        toy.use("cuda")
    assert (toy.device, device.noted()) == ("cpu", None)
    toy.use("cpu")
    assert (toy.device, device.noted()) == ("cpu", None)


def test_the_gpu_that_is_used_stands_in_the_environment_of_a_record(toy, monkeypatch):
    monkeypatch.setattr(toy, "gpu", lambda: "A GPU")
    asked = asked_of("toy", FUNCTION, CALLS, ("jit",), device="cuda")
    record, heading = answered(asked)
    assert toy.device == "cuda"
    assert record.environment.gpu == "A GPU"
    assert "loss in Toy" in heading
    assert " on A GPU: " in heading


def test_the_clock_of_a_gpu_is_on_the_wall():
    on = {name: asked_of("toy", FUNCTION, CALLS, None, device=name).clock_name for name in device.DEVICES}
    assert on == {"cpu": NAME, "cuda": "wall"}


def test_a_record_of_the_cpu_names_no_gpu():
    asked = asked_of("toy", FUNCTION, CALLS, ("jit",))
    record, heading = answered(asked)
    assert record.environment.gpu is None
    assert " on A GPU" not in heading


def test_the_command_refuses_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setattr(workers, "ask", lambda job, limit, heard: perform(job))  # a worker does not know the toy
    found = CliRunner().invoke(graphduel, [*COMMAND, "--device", "cuda"])
    assert found.exit_code == InputsError.exit_code
    assert "--device cuda: Toy sees no GPU here" in found.output


@pytest.mark.slow
def test_the_engines_of_ours_have_no_device():
    found = CliRunner().invoke(graphduel, ["compare", FUNCTION, "--device", "cuda"])
    assert found.exit_code == 2
    assert "our engines run on the CPU alone; leave --device out" in found.output


def test_machines_with_different_gpus_are_not_pooled():
    from compare.records import machines

    one, other = (machines.fingerprint(Environment(gpu=gpu)) for gpu in (None, "A GPU"))
    assert machines.differences(one, other) == ["gpu None and A GPU"]


def test_variables_for_the_cpu_hide_every_gpu_and_those_for_a_gpu_do_not(monkeypatch, tmp_path):
    monkeypatch.undo()
    frameworks.named.cache_clear()
    jax, tensorflow = (frameworks.named(name) for name in ("jax", "tensorflow"))
    assert jax.environment(tmp_path)["JAX_PLATFORMS"] == "cpu"
    assert jax.environment(tmp_path, "cuda")["JAX_PLATFORMS"] == "cuda,cpu"
    assert tensorflow.environment(tmp_path)["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "CUDA_VISIBLE_DEVICES" not in tensorflow.environment(tmp_path, "cuda")
    with pytest.raises(InputsError, match="HIPS autograd runs on the CPU alone; leave --device out"):
        frameworks.named("autograd").use("cuda")
