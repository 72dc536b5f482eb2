"""Eager PyTorch line by line: ops, bytes and saved tensors as counted by hand, and times that come to the step."""

import pytest

from compare import engines
from compare.engines.torch import dispatcher, spans
from compare.errors import UnsupportedError
from compare.instruments import ledger
from compare.instruments.bench import Bench
from compare.own import run
from compare.records.cells import SourceLines
from compare.records.job import Job
from compare.records.own import GUARDS, KERNELS
from compare.records.record import records_of
from compare.report import show
from compare.subjects.subject import mode_of
from tests.helpers.plans import plan_of

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

HIDDEN, OUT = 128 * 64 * 4, 128 * 8 * 4
W1, W2 = 32 * 64 * 4, 64 * 8 * 4


@pytest.fixture
def adapter():
    engine = engines.find_engine("torch")
    engine.start(0)
    return engine


def mlp(params, x, y):
    h = torch.tanh(x @ params["w1"])
    out = h @ params["w2"]
    return ((out - y) ** 2).mean()


def call():
    params = {"w1": torch.randn(32, 64) / 8, "w2": torch.randn(64, 8) / 8}
    return params, torch.randn(128, 32), torch.randn(128, 8)


def line(f, below):
    return f"test_torch_lines.py:{f.__code__.co_firstlineno + below}"


def costs(ops):
    """Bytes made, tensors saved and their bytes, by line; ops that make nothing new left out."""
    rows = {}
    for op in ops:
        made, saved, nbytes = rows.get(op.line, (0, 0, 0))
        rows[op.line] = (made + op.made, saved + op.saved, nbytes + op.saved_bytes)
    return rows


def test_a_step_makes_and_saves_what_can_be_counted_by_hand(adapter):
    rows = costs(adapter.ops.lines(adapter.build("torch-eager", mlp, 0), call()))
    # x @ w1 and tanh; back: the gradient of tanh, and that of w1
    assert rows[line(mlp, 1)] == (3 * HIDDEN + W1, 1, HIDDEN)
    # h @ w2; back: the gradients of h and of w2
    assert rows[line(mlp, 2)] == (OUT + HIDDEN + W2, 0, 0)
    # the difference is what the square keeps
    assert rows[line(mlp, 3)][1:] == (1, OUT)
    assert set(rows) <= {line(mlp, 1), line(mlp, 2), line(mlp, 3), ""}  # the cotangent of the loss is of no line


def test_without_gradients_nothing_is_saved(adapter):
    rows = costs(adapter.ops.lines(adapter.build("torch-eager", mlp, None), call()))
    assert rows == {line(mlp, 1): (2 * HIDDEN, 0, 0), line(mlp, 2): (OUT, 0, 0), line(mlp, 3): (2 * OUT + 4, 0, 0)}


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, cotangent):
        return cotangent * 2


def custom(x):
    y = Double.apply(x)
    z = y.sin()
    return z.sum()


def test_what_a_users_own_backward_runs_is_of_the_line_of_its_forward(adapter):
    rows = costs(adapter.ops.lines(adapter.build("torch-eager", custom, 0), (torch.randn(1000),)))
    # its product, which sin keeps; back: the product of its own backward
    assert rows[line(Double.forward, 2)] == (8000, 1, 4000)
    # the gradient of sin, a cosine and a product
    assert rows[line(custom, 2)] == (12000, 0, 0)
    assert sum(made for made, _, _ in rows.values()) == 4000 * 5 + 8


def trained():
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()

    return model, step


def test_ops_of_backward_are_of_the_line_that_ran_forward_and_those_of_the_optimizer_of_its_own():
    model, step = trained()
    rows = costs(engines.find_engine("torch").ops.lines(step, (torch.randn(4, 6), torch.randint(0, 2, (4,)))))
    parameters = sum(parameter.nbytes for parameter in model.parameters())
    assert rows[line(step, 2)][0] > parameters
    assert rows[line(step, 3)][0] == 4  # the cotangent of the loss
    assert line(step, 4) in rows


def test_the_answer_has_the_lines_of_eager_whose_times_come_to_the_step():
    asked = plan_of("torch", "test_torch_lines.py:mlp", "inputs", ["eager"], seconds=0.05)
    result = run.here(asked, mlp, [call()])
    (record,) = records_of(result.records, SourceLines)
    row = record.modes["eager"]
    assert row.status == "ok"
    assert set(row.lines) == {line(mlp, below) for below in (1, 2, 3)}
    assert sum(cost.seconds for cost in row.lines.values()) + row.elsewhere == pytest.approx(row.step)
    assert all(cost.seconds > 0 for cost in row.lines.values())
    assert record.code[line(mlp, 2)] == 'out = h @ params["w2"]'
    header, *body = show.by_line(result)
    assert header == ("line", "eager", "source")
    assert body[-1][-1] == "timed between watched ones"


def test_a_training_step_is_read_and_put_back():
    model, step = trained()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    asked = plan_of("torch", "test_torch_lines.py:step", "inputs", ["eager"], seconds=0.05)
    result = run.here(asked, step, [(torch.randn(4, 6), torch.randint(0, 2, (4,)))])
    (record,) = records_of(result.records, SourceLines)
    assert line(step, 4) in record.modes["eager"].lines
    assert all(map(torch.equal, before, model.parameters()))


def test_a_worker_has_a_number_and_the_record_of_lines_has_none(adapter):
    bench = Bench.of_function(adapter, "torch-eager", "mlp", mlp, [call()], 0, checks=False)
    job = Job("time", "mlp", "given", process=1, modes=("torch-eager",))
    (record,) = ledger.of_bench(job, bench, "eager", bench.step("torch-eager"))
    assert record.modes["eager"].status == "ok"
    assert (record.workload, record.size) == ("mlp", "given")


def test_an_engine_that_cannot_tell_lines_says_so_in_the_table_and_is_not_asked():
    assert {name for name in engines.names() if engines.find_engine(name).tells_lines} == {"graphduel", "torch"}


# The parts of a compiled call


def branching(params, x, y):
    h = torch.tanh(x @ params["w1"])
    if h.sum().item() > -1e9:
        h = h + 1
    return ((h @ params["w2"] - y) ** 2).mean()


def places(costs):
    """The lines of the functions above, without that of the test, which starts backward passes."""
    first, last = mlp.__code__.co_firstlineno, branching.__code__.co_firstlineno + 4
    return {place: cost for place, cost in costs.items() if first < int(place.rpartition(":")[2]) <= last}


def parts_of(adapter, function, mode):
    from functools import partial

    bench = Bench.of_function(adapter, "torch-eager", "f", function, [call()], 0, checks=False)
    bench.prepare()
    make, eager = partial(bench.step, mode), bench.step("torch-eager")
    return adapter.ops.parts(mode, make, eager, 0, lambda step: bench.state.turns({mode: step}))


@pytest.fixture
def briefly(monkeypatch):
    monkeypatch.setattr(spans, "SECONDS", 0.2)


@pytest.mark.usefixtures("briefly")
def test_the_parts_of_a_call_add_up_to_it_and_its_graph_has_all_lines(adapter):
    row = parts_of(adapter, mlp, "torch-compile")
    assert {*row.parts} >= {KERNELS, GUARDS, spans.WRAPPER, spans.ENTRY, spans.AUTOGRAD}
    assert spans.BETWEEN not in row.parts
    assert row.guards > 0
    (graph,) = row.graphs
    assert graph.lines == {line(mlp, 1): 2, line(mlp, 2): 1, line(mlp, 3): 3}
    assert {*places(row.ops)} == {*graph.lines}
    assert places(row.outside) == {}
    assert 0.5 * row.whole < sum(row.parts.values()) < 2 * row.whole  # benchmarks.parts has how near it is


@pytest.mark.usefixtures("briefly")
def test_what_runs_between_graphs_is_told_by_line(adapter):
    row = parts_of(adapter, branching, "torch-aot-eager")
    assert {spans.GRAPHS, spans.ENTRY} <= {*row.parts}
    assert KERNELS not in row.parts
    assert sorted(sum(graph.lines.values()) for graph in row.graphs) == [3, 5]
    assert {place: cost.kernels for place, cost in places(row.outside).items()} == {line(branching, 2): 1}
    assert row.ops[line(branching, 2)] == 2


def skipped(params, x, y):
    loss = 0
    for _ in range(3):
        loss = loss + float((x @ params["w1"]).sum())
        torch._dynamo.graph_break()
    return compiled_apart(params["w1"]) * loss


@torch.compile(backend="aot_eager")
def compiled_apart(w):
    return w.square().mean()


@pytest.mark.usefixtures("briefly")
def test_what_runs_in_a_function_that_is_skipped_is_not_of_the_entry_into_the_one_graph_that_it_calls(adapter):
    row = parts_of(adapter, skipped, "torch-aot-eager")
    assert len(row.graphs) == 1
    assert row.parts[spans.BETWEEN] > row.parts[spans.ENTRY]


def counting(params, x, y):
    COUNTER["calls"] += 1
    return mlp(params, x, y) * COUNTER["calls"]


COUNTER = {"calls": 0}


@pytest.mark.usefixtures("briefly")
def test_calls_that_do_not_run_the_same_graphs_are_not_told_apart(adapter, monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 1)
    with pytest.raises(UnsupportedError, match=r"compiles again|same graphs|no graph"):
        parts_of(adapter, counting, "torch-aot-eager")


@pytest.mark.usefixtures("briefly")
def test_a_mode_without_graphs_of_dynamo_is_not_told_apart(adapter):
    with pytest.raises(UnsupportedError, match="no graph that Dynamo has captured runs in it"):
        parts_of(adapter, mlp, "torch-export")


@pytest.mark.usefixtures("briefly")
def test_nothing_of_pytorch_is_changed_afterwards(adapter):
    from torch._dynamo.output_graph import OutputGraph
    from torch._inductor.output_code import CompiledFxGraph

    before = OutputGraph.call_user_compiler, CompiledFxGraph.__call__, torch.autograd._engine_run_backward
    parts_of(adapter, mlp, "torch-aot-eager")
    assert before == (OutputGraph.call_user_compiler, CompiledFxGraph.__call__, torch.autograd._engine_run_backward)


# Coverage


class Scaled(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * 2


SCALED = torch.fx.symbolic_trace(Scaled())


@torch.compiler.disable
def apart(h):
    return SCALED(h.view(-1)).view_as(h)


def partly(params, x, y):
    h = apart(torch.nn.functional.linear(x, params["w1"].T))
    return torch.cond(h.sum() > 0, torch.sin, torch.cos, (h,)).mean()


@pytest.mark.parametrize("mode", ["torch-aot-eager", "torch-compile", "compile(backend='eager')"])
@pytest.mark.parametrize(
    ("function", "by_line", "left"),
    [
        (mlp, {1: 2, 2: 1, 3: 3}, {}),
        (branching, {1: 2, 2: 2, 3: 1, 4: 4}, {2: 1}),
        (partly, {1: 1, 2: 3, -3: 2}, {-3: 2}),
    ],
)
def test_ops_outside_of_graphs_are_those_counted_by_hand_in_all_and_by_line(adapter, function, by_line, left, mode):
    """Views are none, nor is what starts the backward pass; `item` is one, and so is each op in a module of FX's."""
    bench = Bench.of_function(adapter, "torch-eager", "f", function, [call()], 0, checks=False)
    bench.prepare()
    eager, compiled = bench.step("torch-eager"), bench.step(mode_of(adapter, mode))
    compiled.bind(0)()
    for step, expected in ((eager, by_line), (compiled, left)):
        found = dispatcher.OutsideOps().of_call(step.bind(0))
        hand = {line(function, below): count for below, count in expected.items()}
        assert {place: cost.kernels for place, cost in found.items() if cost.kernels} == hand
        assert adapter.ops.outside(step.bind(0)) == sum(expected.values())


def test_what_export_captures_runs_op_by_op_and_is_no_graph_of_dynamos(adapter):
    bench = Bench.of_function(adapter, "torch-eager", "f", mlp, [call()], 0, checks=False)
    bench.prepare()
    assert adapter.ops.outside(bench.step("torch-export").bind(0)) == 6
