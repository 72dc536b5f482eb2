"""Which captured graph is slower compiled, or wrong, and which op of it; and the file that shows it by itself."""

import shlex
import subprocess
import sys
import time

import pytest

from compare.claims import remedies
from compare.engines import find_engine
from compare.engines.torch import graph_files
from compare.instruments.bench import Bench
from compare.own import graph, workers
from compare.records.job import Budget, Job
from compare.records.record import Environment, Run

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

LATE, WRONG = "late_in_tests", "wrong_in_tests"


def changing(change):
    """A backend that runs the ops of a graph one by one, and changes what each returns."""

    def backend(module, _inputs):
        class Changed(torch.fx.Interpreter):
            def run_node(self, n):
                return change(n, super().run_node(n))

        return Changed(module).run

    return backend


def wait_at_cumsum(node, value):
    if getattr(node.target, "__name__", node.target) == "cumsum":
        time.sleep(0.002)
    return value


def forget_a_sign(node, value):
    return -value if getattr(node.target, "__name__", node.target) == "cumsum" else value


@pytest.fixture(autouse=True, scope="module")
def backends():
    for name, change in ((LATE, wait_at_cumsum), (WRONG, forget_a_sign)):
        if name not in torch._dynamo.list_backends(exclude_tags=()):
            torch._dynamo.register_backend(name=name)(changing(change))


@pytest.fixture(autouse=True)
def briefly(monkeypatch):
    monkeypatch.setattr(graph, "BUDGET", Budget(rounds=5, least=5, seconds=0.1))


weight = torch.nn.Parameter(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))


def loss(x):
    h = torch.tanh(x @ weight)
    torch._dynamo.graph_break()
    h = torch.relu(h + 1)
    h = torch.cumsum(h, 0) / 10
    return torch.sin(h * 2).exp().mean()


def found(word, function=loss, threads=1):
    engine = find_engine("torch")
    base, mode = engine.mode_names[0], engine.words.full_name(word)
    calls = [(torch.randn(16, 8, generator=torch.Generator().manual_seed(1)),)]
    bench = Bench.of_function(engine, base, f"f.py:{function.__name__}", function, calls, 0, checks=False)
    job = Job("time", "f", "given", 1, modes=(base, mode), threads=threads)
    (record,) = graph.bisections(job, bench, {mode: "compile"})
    return record


def told(record):
    start = Run("1", "2026-01-01", {"framework": "torch"}, environment=Environment())
    return remedies.slow_graphs([start, record])


def test_the_graph_that_is_late_is_cut_down_to_the_op_that_waits():
    record = found(f"compile(backend={LATE!r})")
    row = record.modes["compile"]
    assert row.status == "ok", row.reason
    assert [trial.wrong for trial in row.graphs] == ["", ""]
    assert (row.number, len(row.graphs)) == (2, 2)
    (op,) = row.part.ops
    assert op.startswith("cumsum (test_bisection.py:")
    assert row.part.ratio[1] > 1.5
    (said,) = told(record)
    assert said.startswith("Graph 2 of 2 of compile (test_bisection.py:")
    assert f"its slow part is `{op}`" in said
    assert said.endswith("graph_2.py in --out shows it.")


def test_the_graph_that_is_wrong_is_cut_down_by_the_gate():
    record = found(f"compile(backend={WRONG!r})")
    row = record.modes["compile"]
    assert row.status == "ok", row.reason
    assert row.number == 2
    assert [bool(trial.wrong) for trial in row.graphs] == [False, True]
    (op,) = row.part.ops
    assert op.startswith("cumsum (")
    (said,) = told(record)
    assert " is wrong: " in said
    assert f"Its wrong part is `{op}`" in said


def test_a_graph_runs_once_for_both_of_its_halves(monkeypatch):
    seen, run = [], torch.fx.Interpreter.run
    monkeypatch.setattr(torch.fx.Interpreter, "run", lambda *args: seen.append(args) or run(*args))
    word = "compile(where='model')"
    drawn = torch.fx.symbolic_trace(lambda x, y: torch.relu(x @ y + 1).exp() * x)
    program = graph_files.FxProgram(drawn.graph, (torch.ones(2, 2), torch.eye(2)), word, {})
    halves = program.halves
    assert len(seen) == 1
    assert [[op.partition(" ")[0] for op in half.ops] for half in halves] == [["matmul", "add"], ["relu", "exp", "mul"]]
    assert [value.tolist() for value in halves[1].inputs] == [[[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]
    command = program.text("graph.py").splitlines()[4]
    assert shlex.split(command) == ["graphduel", "compare", "graph.py:step", "--mode", word]


def test_a_backend_that_runs_the_same_ops_has_no_slower_graph():
    record = found("compile(backend='eager')")
    row = record.modes["compile"]
    assert row.status == "ok", row.reason
    assert all(trial.ratio and not trial.wrong for trial in row.graphs)


def test_what_is_not_compiled_by_dynamo_is_told():
    row = found("export()").modes["compile"]
    assert row.status == "unsupported"
    assert "graphs" in row.reason


def test_the_file_runs_by_itself_and_is_written_beside_the_results(tmp_path):
    record = found(f"compile(backend={LATE!r})")
    record.modes["compile"].program = record.modes["compile"].program.replace(LATE, "eager")
    workers.keep_graphs([record], tmp_path)
    ran = subprocess.run([sys.executable, tmp_path / "graph_2.py"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert " times [" in ran.stdout
    assert "the largest difference of a number: 0" in ran.stdout
