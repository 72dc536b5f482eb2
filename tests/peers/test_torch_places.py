"""Where a PyTorch step is compiled: its places, and what a mode changes while it runs and puts back."""

import inspect
from functools import partial

import optree
import pytest

from compare.engines import find_engine
from compare.engines.torch import edits, trials
from compare.errors import InputsError, UnsupportedError

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.layer(x))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return x + self.inner(x)


model = torch.nn.Sequential(Block(), Block(), Block(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(x, y):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def calls(*rows):
    return [(torch.ones(n, 4), torch.ones(n, 1)) for n in rows]


def noting(ran):
    def compile_(function):
        def run(*args, **options):
            method = function if hasattr(function, "__self__") else function.__wrapped__
            ran.append(type(method.__self__).__name__)
            return function(*args, **options)

        return run

    return compile_


def test_arguments_are_padded_to_a_size_and_larger_ones_stay():
    seen = []

    def step(x, mask):
        seen.append((tuple(x.shape), mask.sum().item()))
        return (x * mask).sum()

    run = edits.padding({"x": {1: 4}, "mask": {1: 4}}, step, step)
    for size in (3, 6):
        x = torch.ones(2, size, requires_grad=True)
        assert run(x, torch.ones(2, size, dtype=torch.bool)).item() == 2 * size
    assert seen == [((2, 4), 6), ((2, 6), 12)]
    calls = [(torch.ones(2, n), torch.ones(2, n, dtype=torch.bool)) for n in (3, 5)]
    assert trials.masked_axes(step, calls) == {"x": {1: 5}, "mask": {1: 5}}
    assert trials.masked_axes(step, [(x, x) for x, _ in calls]) == {"x": {1: 5}, "mask": {1: 5}}
    assert trials.masked_axes(lambda x: x, [call[:1] for call in calls]) == {}


def test_the_places_of_a_step_are_its_model_its_repeated_blocks_and_its_optimizer():
    places = edits.places_of(step, calls(2))
    assert {name: len(holders) for name, holders in places.items()} == {
        "model": 1, "Block": 3, "Inner": 3, "optimizer": 1
    }  # fmt: skip
    found = trials.facts(step, calls(2, 3))
    assert int(found.pop("cores", ["1"])[0]) >= 1
    assert found == {
        "places": ["model 1", "Block 3", "Inner 3", "optimizer 1"], "varying": ["x 0", "y 0"], "held": ["300"]
    }  # fmt: skip


def test_a_module_among_the_arguments_is_a_place_too():
    def loss(net, x):
        return net(x).sum()

    assert {*edits.places_of(loss, [(model, torch.ones(2, 4))])} == {"model", "Block", "Inner"}


@pytest.mark.parametrize(
    ("where", "expected"),
    [(["Block"], ["Block"] * 3), (["model", "optimizer"], ["Sequential", "SGD"]), (["Linear"], ["Linear"] * 4)],
)
def test_places_run_compiled_inside_the_context_alone(where, expected):
    ran = []
    within = edits.compiled_at(where, step, calls(2), noting(ran))
    for _ in range(2):
        ran.clear()
        with within():
            step(*calls(2)[0])
        assert ran == expected
    ran.clear()
    step(*calls(2)[0])
    assert ran == []


def test_a_model_of_a_class_of_pytorchs_runs_compiled_by_itself():
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    with edits.compiled_at(["model"], step, calls(2), partial(torch.compile, backend=backend))():
        model(calls(2)[0][0])
    assert len(graphs) == 1


def test_a_place_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(
        UnsupportedError, match=r"where='Head': the step reaches no such place; its places: model \(1\), B"
    ):
        edits.compiled_at(["Head"], step, calls(2), noting([]))
    for wrong in ("", (), 3, ["Block", 1]):
        with pytest.raises(InputsError, match="a place is 'model', 'optimizer' or the name of a class"):
            edits.check_places(wrong)


def test_rates_are_tensors_inside_the_context_and_follow_a_schedule():
    within = edits.tensor_rates(True, step, calls(2))
    for rate in (0.1, 0.05):
        optimizer.param_groups[0]["lr"] = rate
        with within():
            assert torch.equal(optimizer.param_groups[0]["lr"], torch.tensor(rate))
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)
    optimizer.param_groups[0]["lr"] = 0.1


def test_marks_lie_on_the_axes_of_the_arguments():
    x, y = calls(5)[0]
    marked = edits.marking({"x": [0], "y": 0}, step, lambda x, y: x.sum() + y.sum())
    torch._dynamo.mark_static(y, 1)
    own = {*vars(y)}
    with edits.restore_marks([(x, y)]):
        assert marked(x, y) == 25
        assert (x._dynamo_dynamic_indices, y._dynamo_dynamic_indices) == ({0}, {0})
    assert (vars(x), {*vars(y)}) == ({}, own)
    with pytest.raises(InputsError, match="the step has no parameter 'z'; it has x, y"):
        edits.marking({"z": 0}, step, step)


def test_numbers_are_given_as_tensors():
    def kind(x, scale):
        return type(x), type(scale)

    assert edits.with_tensors(["scale"], kind, kind)(1, 2) == (int, torch.Tensor)


def test_checkpointed_blocks_give_the_same_gradients_inside_the_context_alone():
    x, y = calls(3)[0]

    def gradients():
        loss = (model(x) - y).square().mean()
        return torch.autograd.grad(loss, list(model.parameters()))

    expected = gradients()
    with edits.checkpoint_modules("Block", step, calls(3))():
        assert all("forward" in vars(block) for block in model[:3])
        assert all(map(torch.allclose, gradients(), expected))
    assert not any("forward" in vars(block) for block in model[:3])


said = []


def tells(x):
    doubled = 2 * x
    said.append(doubled)
    kept = said.append(3)
    return doubled, kept  # fmt: skip


def line_of(text, function=tells):
    lines, first = inspect.getsourcelines(function)
    return f"test_torch_places.py:{first + next(i for i, line in enumerate(lines) if text in line)}"


def test_a_statement_is_left_out_inside_the_context_alone():
    with edits.without_lines([line_of("said.append(doubled)")], tells, [])():
        assert tells(2) == (4, None)
    assert said == [3]
    tells(2)
    assert said == [3, 4, 3]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (line_of("doubled = 2"), "no call whose result nothing takes is there by itself"),
        (line_of("kept = said"), "no call whose result nothing takes is there by itself"),
        ("test_torch_places.py:1", "the step reaches no function with this line"),
        ("elsewhere.py:3", "the step reaches no function with this line"),
    ],
)
def test_a_statement_whose_value_is_used_stays(line, reason):
    with pytest.raises(UnsupportedError, match=reason):
        edits.without_lines([line], tells, [])


@pytest.mark.parametrize(
    "word",
    [
        "compile(where='Block', backend='aot_eager')",
        "compile(mark_dynamic={'x': 0, 'y': 0})",
        "compile(checkpoint='Block', backend='aot_eager')",
    ],
)
def test_a_mode_with_a_place_or_a_mark_gives_what_eager_gives(word):
    engine = find_engine("torch")
    build = engine.build_over(calls(3))
    built, plain = (
        build(mode, lambda x, y: (model(x) - y).square().mean(), 0)
        for mode in (engine.words.full_name(f"tried={word}"), "torch-eager")
    )
    with built.within():
        (value, _), (expected, _) = built(*calls(3)[0]), plain(*calls(3)[0])
    assert torch.allclose(value, expected)


def noisy(x, scale):
    out = model(x) * scale
    said.append(1)
    return out.square().mean()


def test_edits_together_give_what_eager_gives_in_one_graph():
    line = line_of("said.append(1)", noisy)
    word = f"compile(backend='aot_eager', fullgraph=True, tensor_numbers=['scale'], without=[{line!r}])"
    engine, inputs = find_engine("torch"), [(calls(3)[0][0], scale) for scale in (0.5, 2.0)]
    build, before = engine.build_over(inputs), len(said)
    built, plain = (build(mode, noisy, 0) for mode in (engine.words.full_name(f"tried={word}"), "torch-eager"))
    for call in inputs:
        (value, gradients), (expected, others) = built(*call), plain(*call)
        assert torch.allclose(value, expected)
        assert all(map(torch.allclose, optree.tree_leaves(gradients), optree.tree_leaves(others)))
    assert len(said) == before + len(inputs)
