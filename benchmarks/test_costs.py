"""What a recorded op, a long tape, a compilation and a stream of lengths cost, as `pytest-benchmark` keeps it."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import dynamic
from benchmarks import compile_time, compiling, deep, recording, stream
from benchmarks.programs import ROWS
from compare.run.environment import pin


@pytest.fixture(autouse=True, scope="module")
def one_core() -> None:
    pin()


@pytest.mark.parametrize("mode", recording.MODES)
@pytest.mark.parametrize("op", recording.OPS)
def test_one_op(benchmark: BenchmarkFixture, op: str, mode: str) -> None:
    benchmark.group = op
    with dynamic.set_grad_enabled(mode == "recorded"):
        benchmark(recording.calls(op)[mode])


@pytest.mark.parametrize("length", recording.LENGTHS)
def test_a_tape_there_and_back(benchmark: BenchmarkFixture, length: int) -> None:
    benchmark.group = "tape"
    x = dynamic.tensor(1.0, requires_grad=True)
    benchmark.pedantic(lambda: recording.chain(x, length).backward(), rounds=3)
    benchmark.extra_info.update(recording.tape(length, repeats=1)._asdict())


@pytest.mark.parametrize("row", ROWS)
def test_compiling_a_step(benchmark: BenchmarkFixture, row: str) -> None:
    benchmark.group = "compile a step"
    made = ROWS[row]()
    compiled = benchmark.pedantic(lambda: compiling.step(made), rounds=3)
    benchmark.extra_info.update(compiled._asdict())


@pytest.mark.parametrize("nodes", [1_000, 10_000])
@pytest.mark.parametrize("shape", deep.SHAPES)
def test_compiling_many_nodes(benchmark: BenchmarkFixture, shape: str, nodes: int) -> None:
    benchmark.group = f"compile {shape}"
    compiled = benchmark.pedantic(lambda: compile_time.measured(shape, nodes), rounds=1)
    benchmark.extra_info.update(compiled._asdict())


@pytest.mark.parametrize("mode", [mode for mode in stream.MODES if mode != "torch"])
def test_the_first_epoch_of_a_stream(benchmark: BenchmarkFixture, mode: str) -> None:
    benchmark.group = "stream of lengths"
    params, sequences = stream.data()
    made = benchmark.pedantic(stream.epoch, setup=lambda: ((stream.MODES[mode](), params, sequences), {}), rounds=2)
    benchmark.extra_info["compiles"] = made.compiles()
