"""Public training steps of PyTorch: the gate takes each as its author wrote it, and Dynamo's reasons name its lines."""

from __future__ import annotations

import collections
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from compare import engines as frameworks
from compare.engines.torch import dynamo
from compare.errors import InputsError
from compare.own import run
from compare.records.cells import Compilations, Parity
from compare.records.record import records_of
from compare.subjects import origin
from compare.subjects.effects import effects_of
from tests.helpers.plans import plan_of

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]  # PyTorch warns of what Dynamo does itself
EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"
DRAW = {"cnn", "transformer"}
"""The examples with dropout."""


@pytest.fixture
def adapter():
    found = frameworks.find_engine("torch")
    if found.missing:
        pytest.skip(found.missing)
    found.start(0, doubles=None)
    return found


@pytest.fixture
def fresh(adapter):
    """Dynamo that has seen nothing."""
    adapter.compiler.forget()
    return adapter


def example(name):
    return origin.load_function(f"{EXAMPLES / name}.py:loss", None)


def compiled(adapter, loss, calls):
    """What Dynamo tells of the calls; no code is generated."""
    import torch

    before = adapter.observed(loss)
    step = torch.compile(loss, backend="eager")
    for call in calls:
        step(*call)
    return adapter.observed(loss).since(before)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_each_step_is_gated_unchanged_and_keeps_its_state(adapter, name):
    loss, calls = example(name)
    model = calls[0][0]
    before = {key: value.clone() for key, value in model.state_dict().items()}
    asked = plan_of("torch", "", "", ("eager",), seconds=0.01)
    records = run.here(asked, loss, calls).records
    (found,), (parity,) = records_of(records, Compilations), records_of(records, Parity)
    eager = parity.modes["eager"]
    error = max(eager.output_error, eager.gradient_error)
    assert found.random == (name in DRAW)
    assert found.undoubled is None
    assert eager.status == "ok"
    assert 0 < error < 1e-4  # from float64, with the same random numbers where there are any
    assert all(value.equal(model.state_dict()[key]) for key, value in before.items())


def test_a_graph_break_names_the_line_of_the_user(fresh):
    found = compiled(fresh, *example("early_exit"))
    (said,) = found.breaks
    title, hint, page = said.splitlines()
    assert title == "Data-dependent branching (early_exit.py:25: if entropy < self.threshold:)"
    assert hint.startswith("For the common pattern")
    assert page.startswith("See https://")
    first = {made.reason for made in found.compilations}
    assert f"{dynamo.FIRST} (early_exit.py:25: if entropy < self.threshold:)" in first  # goes on after the break
    assert all(reason.startswith(f"{dynamo.FIRST} (early_exit.py:") for reason in first)


def test_each_length_of_an_unrolled_loop_compiles_until_the_limit_which_is_said(fresh):
    loss, calls = example("char_rnn")
    found = compiled(fresh, loss, calls)
    assert len(calls) == 10
    reasons = [made.reason for made in found.compilations]
    mismatch = "tensor 'line_tensor' size mismatch at index 0. expected 3, actual 4"
    assert re.fullmatch(rf"{dynamo.FIRST} \(char_rnn\.py:\d+: \w+\)", reasons[0])
    assert re.fullmatch(re.escape(mismatch) + r" \(char_rnn\.py:\d+: \w+\)", reasons[1])
    assert len(reasons) == 8
    assert [limit.partition(":")[0] for limit in found.limits] == ["the recompile limit of 8"]
    assert "expected 10, actual 11" in found.limits[0]


def test_a_workload_may_compile_more_often(fresh):
    fresh.start(0)
    assert len(compiled(fresh, *example("char_rnn")).compilations) == 10


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("compile", {}),
        ("compile-dynamic", {"dynamic": True}),
        ("reduce-overhead", {"mode": "reduce-overhead"}),
        ("max-autotune", {"mode": "max-autotune"}),
        ("aot-eager", {"backend": "aot_eager"}),
    ],
)
def test_modes_are_those_of_torch_compile(adapter, monkeypatch, mode, options):
    import torch

    asked = []
    monkeypatch.setattr(torch, "compile", lambda loss, **options: asked.append(options) or loss)
    adapter.build(f"torch-{mode}", len, 0)
    assert asked == [options]


def test_the_loss_may_be_in_a_tuple_or_a_dict_and_several_modules_be_differentiated(adapter):
    import torch

    one, two, x = torch.nn.Linear(3, 1), torch.nn.Linear(1, 1), torch.ones(2, 3)

    def gradients(loss, first):
        returned, found = adapter.numpy(adapter.build("torch-eager", loss, 0)(first, x))
        return returned, found

    (value, more), found = gradients(lambda m, x: (m(x).sum(), {"logits": m(x)}), one)
    assert value == pytest.approx(more["logits"].sum())
    np.testing.assert_array_equal(found["weight"], [[2, 2, 2]])
    returned, found = gradients(lambda m, x: {"logits": m(x), "loss": m(x).sum()}, one)
    assert returned.keys() == {"logits", "loss"}
    np.testing.assert_array_equal(found["bias"], [2])
    _, found = gradients(lambda both, x: both[1](both[0](x)).sum(), (one, two))
    np.testing.assert_array_equal(found[1]["bias"], [2])
    np.testing.assert_allclose(found[0]["bias"], 2 * two.weight.detach().numpy()[0])
    params = {"w": torch.ones(3), "scale": 2, "ids": torch.ones(2, dtype=torch.int64)}
    _, found = gradients(lambda params, x: (x @ params["w"]).sum() * params["scale"], params)
    np.testing.assert_array_equal(found["w"], [4, 4, 4])
    assert found["ids"] == found["scale"] == ()


def stepped(model, x):
    loss = (model(x) ** 2).sum()
    loss.backward()
    return loss


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda m, x: m(x), r"the loss is a tensor of shape \(2, 1\); return a tensor of one number"),
        (lambda m, x: m(x).sum().item(), "it gives a float; return a tensor of one number"),
        (lambda m, x: m(x).sum().detach(), "the loss has no gradient; return the loss of a module"),
        (lambda m, x: None, "it gives nothing; return"),
        (lambda m, x: {"rec": m(x).sum()}, "it gives a dict without 'loss', but with 'rec'; return a tensor"),
        (lambda m, x: ([x], m(x).sum()), "it gives a tuple that begins with a list; return a tensor"),
        (stepped, "has been differentiated already; leave backward"),
    ],
)
def test_what_is_no_loss_is_refused_with_what_to_return(adapter, loss, said):
    import torch

    with pytest.raises(InputsError, match=said):
        adapter.build("torch-eager", loss, 0)(torch.nn.Linear(3, 1), torch.ones(2, 3))
    with pytest.raises(InputsError, match="neither the first argument nor the loss holds a parameter"):
        adapter.build("torch-eager", lambda n, x: x.sum(), 0)(3, torch.ones(2, 3))


def test_a_loss_of_integers_is_differentiated_in_the_modules_that_it_closes_over(adapter):
    import torch

    model = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 2))

    def loss(tokens):
        return model(tokens).square().mean()

    tokens = torch.tensor([[0, 1], [1, 4]])
    value, by_name = adapter.build("torch-eager", loss, 0)(tokens)
    gradients = by_name["model"]
    expected = torch.autograd.grad(loss(tokens), list(model.parameters()))
    assert value == loss(tokens).detach()
    assert list(gradients) == [name for name, _ in model.named_parameters()]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(gradients.values(), expected, strict=True))
    assert any(gradient.abs().max() > 0 for gradient in gradients.values())


def of_closure(*, requires_grad=False):
    """A loss of floats over a model with running statistics that it closes over, and its calls."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.randn(5, 3, requires_grad=requires_grad)
    return model, lambda x: model(x).square().mean(), [(x,), (x.detach() * 2,)]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_gradients_are_those_that_backward_leaves(adapter, requires_grad):
    model, loss, ((x,), _) = of_closure(requires_grad=requires_grad)
    step = adapter.build("torch-eager", loss, 0)
    _, gradients = step(x)
    loss(x).backward()
    assert list(gradients) == ["x"] * requires_grad + ["model"]
    *of_x, of_model = gradients.values()
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert of_model.keys() == expected.keys()
    assert all(of_model[name].equal(expected[name]) for name in expected)
    assert [gradient.equal(x.grad) for gradient in of_x] == [True] * requires_grad
    assert requires_grad or x.grad is None
    count = len(expected) + requires_grad
    assert step.gradients_in == f"{count} parameters, as backward() leaves them"


def test_without_any_parameter_gradients_are_in_the_floats_of_the_first_argument(adapter):
    import torch

    x, y = torch.ones(3), torch.ones(3)
    step = adapter.build("torch-eager", lambda x, y: (x * y).sum(), 0)
    assert step(x, y)[1].equal(y)
    assert step.gradients_in == "1 tensor of the first argument, as no parameter requires any"
    y.requires_grad_()
    assert {name: gradient.tolist() for name, gradient in step(x, y)[1].items()} == {"y": [1, 1, 1]}
    assert y.grad is None


def test_a_model_that_a_loss_closes_over_runs_in_float64_and_keeps_its_buffers(adapter):
    model, loss, calls = of_closure()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    asked = plan_of("torch", "f.py:loss", "", ("eager",), seconds=0.01)
    found = run.here(asked, loss, calls)
    (row,), (parity,) = records_of(found.records, Compilations), records_of(found.records, Parity)
    assert (row.undoubled, row.random) == (None, False)
    assert 0 < parity.modes["eager"].output_error < 1e-5
    assert all(value.equal(model.state_dict()[name]) for name, value in before.items())
    assert "Gradients are of 6 parameters" in " ".join(repr(found).split())


def test_tensors_that_a_loss_closes_over_or_makes_are_in_float64_beside_its_arguments(adapter):
    import torch

    matrix, bias = torch.randn(3, 4), torch.zeros(3)

    def loss(w, x):
        y = torch.nn.functional.layer_norm(torch.nn.functional.linear(x, matrix, bias), (3,), torch.ones(3), bias)
        sums = torch.zeros(3)
        sums += y.sum(0)
        return torch.cat([y @ w, torch.ones(2, 2)]).pow(2).mean() + sums.sum()

    found = run.here(
        plan_of("torch", "f.py:loss", "", ("eager",), seconds=0.01), loss, [(torch.randn(3, 2), torch.randn(5, 4))]
    )
    assert records_of(found.records, Compilations)[0].undoubled is None
    assert 0 < records_of(found.records, Parity)[0].modes["eager"].output_error < 1e-5


def test_a_packed_sequence_is_one_argument_and_outputs_of_any_class_are_compared(adapter):
    import torch
    from torch.nn.utils.rnn import pack_sequence

    class Output(collections.OrderedDict):
        pass

    lstm = torch.nn.LSTM(8, 4)

    def loss(packed):
        last = lstm(packed)[1][0]
        return Output(loss=last.square().mean(), more=[("text", last)])

    calls = [(pack_sequence([torch.randn(n, 8) for n in (3, 2)]),)]
    found = run.here(plan_of("torch", "f.py:loss", "", ("torch-eager",), seconds=0.01), loss, calls)
    assert records_of(found.records, Compilations)[0].gradients == "4 parameters, as backward() leaves them"
    assert 0 < records_of(found.records, Parity)[0].modes["eager"].output_error < 1e-5


def test_what_gives_no_loss_is_compared_by_its_value_unless_gradients_are_asked_for(adapter):
    import torch

    model = torch.nn.Linear(3, 2)

    @torch.no_grad()
    def infer(x):
        return model(x)

    for gradient in (None, False):
        asked = plan_of("torch", "f.py:infer", "", ("eager",), seconds=0.01, gradient=gradient)
        found = run.here(asked, infer, [(torch.ones(4, 3),)])
        assert not found.records[0].settings["gradient"]
    asked = plan_of("torch", "f.py:infer", "", ("eager",), seconds=0.01, gradient=True)
    with pytest.raises(InputsError, match="the loss is a tensor of shape"):
        run.here(asked, infer, [(torch.ones(4, 3),)])


def test_breaks_and_recompilations_inside_an_optimizer_name_the_line_that_called_it(fresh):
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    seen = []

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        schedule.step()
        seen.append(loss.item())

    found = compiled(fresh, step, [(torch.ones(2, 3),)] * 3)
    assert all(re.search(r" \(test_torch_steps\.py:\d+: ", reason) for reason in found.breaks), found.breaks
    (inside,) = (reason for reason in found.breaks if "graph_break()" in reason)
    assert re.match(
        r"Call to `torch\._dynamo\.graph_break\(\)` in torch/optim/optimizer\.py "
        r"\(test_torch_steps\.py:\d+: optimizer\.step\(\)\)\nThat code is not yours: .*\nSee https://",
        inside,
    )
    assert "Remove" not in inside
    (skipped,) = (reason for reason in found.breaks if "optimizer.zero_grad()" in reason)
    assert re.match(
        r"Attempted to inline .* in torch/\S+\.py \(.*\)\nThat code is not yours: .*\nSee https://", skipped
    )
    again = {made.reason for made in found.compilations if not made.reason.startswith(dynamo.FIRST)}
    rate, length = (next(reason for reason in again if name in reason) for name in ("'lr'", "len("))
    assert re.fullmatch(r"no longer self\.param_groups.* \(test_torch_steps\.py:\d+: optimizer\.step\(\)\)", rate)
    assert re.fullmatch(r"no longer len\(.*\) == \d+ \(test_torch_steps\.py:\d+: seen\.append\(.*\)\)", length)


def test_breaks_in_the_code_of_a_compiler_at_work_are_not_counted():
    pytest.importorskip("torch")

    def counted(*files):
        """The count after these files have called one another, the user's line first, and the last counts a break."""
        breaks = dynamo.Breaks()
        call = partial(breaks.__setitem__, "Attempt to trace generator", 1)
        for file in reversed(files):
            space = {"call": call}
            exec(compile("def within(): call()", f"/env/site-packages/{file}", "exec"), space)
            call = space["within"]
        call()
        return breaks, [line.partition(": ")[2] for lines in breaks.at.values() for line, _ in lines]

    entry = ("torch/_dynamo/convert_frame.py", "torch/_dynamo/exc.py")
    assert counted("torch/optim/adam.py", *entry) == ({"Attempt to trace generator": 1}, ["call()"])
    assert counted("torch/optim/adam.py", "torch/_dynamo/convert_frame.py", "torch/fx/proxy.py", *entry)[0]
    assert counted("torch/autograd/graph.py", "torch/fx/graph.py", *entry) == ({}, [])


def test_breaks_in_functions_of_a_library_have_no_hint_for_its_authors(fresh):
    import torch

    layer = torch.nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(layer.parameters())
    encode = torch.compiler.disable(lambda x: x + 1)

    def fit(x):
        def closure():
            optimizer.zero_grad()
            loss = layer(x).square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    theirs = next(reason for reason in compiled(fresh, fit, [(torch.ones(2, 3),)]).breaks if "optimizer" in reason)
    assert re.search(
        r" in torch/optim/lbfgs\.py \(test_torch_steps\.py:\d+: return optimizer.*\nThat code is not", theirs
    )
    own = next(iter(compiled(fresh, lambda x: encode(x * 2), [(torch.ones(2, 3),)]).breaks))
    assert "\nRemove the `torch.compiler.disable` call" in own


def test_a_break_in_a_loop_whose_function_is_skipped_names_the_line(fresh):
    import torch

    layer = torch.nn.Linear(3, 1)

    def step(x):
        for part in x.chunk(2):
            layer(part).sum().backward()

    found = compiled(fresh, step, [(torch.ones(2, 3),)])
    assert found.breaks
    assert all(re.search(r"\(test_torch_steps\.py:\d+: layer\(part\)", reason) for reason in found.breaks)


def test_a_break_in_a_function_that_is_inlined_has_that_functions_line_alone(fresh):
    import torch

    def scale(x):
        return x / x.max().item()

    found = compiled(fresh, lambda x: scale(x).sum(), [(torch.ones(2, 3),)])
    ((reason, count),) = found.breaks.items()
    assert count == 2  # in the function that calls, then in the one that is called
    assert re.search(r" \(test_torch_steps\.py:\d+: return x / x\.max\(\)\.item\(\)\)\n", reason)


def test_a_break_has_the_line_that_dynamo_traces_else_the_one_that_runs(monkeypatch):
    pytest.importorskip("torch")
    from torch._dynamo import utils
    from torch._guards import TracingContext

    library, stacks = "/env/site-packages/torch/optim/optimizer.py", [["step.py"], []]
    breaks = dynamo.Breaks()
    monkeypatch.setitem(utils.counters, "graph_break", breaks)
    monkeypatch.setattr(dynamo, "_running", lambda frame: ("step.py:6: optimizer.step()", []))
    for count, files in enumerate(stacks, 1):
        stack = [SimpleNamespace(filename=file, lineno=7, line="optimizer.step()") for file in (*files, library)]
        monkeypatch.setattr(TracingContext, "extract_stack", lambda stack=stack: stack)
        breaks["Call to stop"] = count
    found = frameworks.find_engine("torch").observed(len).breaks
    lines = [
        re.search(r"\((step\.py:\d): optimizer\.step\(\)\)", reason)[1] for reason in found if "Call to stop" in reason
    ]
    assert lines == ["step.py:7", "step.py:6"]


def test_a_branch_as_an_op_is_watched_for_effects(adapter):
    import torch

    layer = torch.nn.Linear(3, 3)

    def loss(x):
        return torch.cond(x.sum() > 0, lambda y: layer(y).relu(), lambda y: layer(y).tanh(), (x,)).sum()

    with adapter.compiler.eagerly(loss):
        assert effects_of(loss, (torch.ones(2, 3),), adapter) == []


# What a file compiles by itself ---------------------------------------------------------------------------------------

NET = """
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
inputs = [(torch.randn(n, 8),) for n in (3, 3)]
"""
ALREADY = {
    "a function": '@torch.compile(backend="aot_eager")\ndef loss(x):\n    return net(x).pow(2).mean()\n',
    "a module": 'net = torch.compile(net, backend="aot_eager")\ndef loss(x):\n    return net(x).pow(2).mean()\n',
    "in place": (
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return net(x)\n"
        'block = Net()\nblock.compile(backend="aot_eager")\ndef loss(x):\n    return block(x).pow(2).mean()\n'
    ),
    "in the step": 'def loss(x):\n    return torch.compile(net, backend="aot_eager")(x).pow(2).mean()\n',
}


def asked(tmp_path, text, *modes, name="loss", **options):
    """The result of a file's function in this process."""
    file = tmp_path / "mine.py"
    file.write_text(NET + text, "utf-8")
    function, calls = origin.load_function(f"{file}:{name}", None)
    question = plan_of("torch", f"{file}:{name}", "", modes or ("eager",), seconds=0.01, **options)
    return run.here(question, function, calls)


@pytest.mark.parametrize("kind", ALREADY)
def test_what_a_file_compiles_is_a_mode_of_its_own_and_eager_compiles_nothing(adapter, tmp_path, kind):
    found = asked(tmp_path, ALREADY[kind])
    assert found.modes == ("eager", "as-written")
    assert found.verdict.compiles == {"eager": 0, "as-written": 1}
    shares = {
        mode: row.share for record in records_of(found.records, Compilations) for mode, row in record.modes.items()
    }
    assert shares["eager"] is None
    assert shares["as-written"] == (1 if kind == "a function" else pytest.approx(shares["as-written"], abs=0.99))
    assert 0 < shares["as-written"] <= 1


def test_a_file_that_compiles_nothing_has_no_such_mode(adapter, tmp_path):
    assert asked(tmp_path, "def loss(x):\n    return net(x).pow(2).mean()\n").modes == ("eager",)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("@torch.compiler.disable\ndef inner(x):\n    return net(x).mean()\n", "aot-eager"),
        ('net.compile(backend="aot_eager")\ndef inner(x):\n    return net(x).mean()\n', "as-written"),
    ],
)
def test_where_nothing_runs_compiled_that_is_said_first(adapter, tmp_path, text, mode):
    found = asked(
        tmp_path, f"{text}def loss(x):\n    return inner(x)\n", "aot-eager" if mode == "aot-eager" else "eager"
    )
    assert found.verdict.sentence.startswith(f"Nothing of the step ran compiled in {mode}.")
    assert f"{mode} ran none of the ops of a forward pass compiled." in " ".join(repr(found).split())


def test_half_of_a_step_is_told_as_that(adapter, tmp_path):
    text = (
        "@torch.compiler.disable\ndef inner(x):\n    return net(x)\n"
        "def loss(x):\n    return inner(net(x * 2)[:, :1] + x).mean()\n"
    )
    (share,) = [
        row.share
        for record in records_of(asked(tmp_path, text, "aot-eager").records, Compilations)
        for mode, row in record.modes.items()
        if mode == "aot-eager"
    ]
    assert 0.4 < share < 0.8


def test_breaks_at_several_lines_are_several_with_the_hint_and_the_page(fresh, tmp_path):
    text = (
        "inputs = inputs[:1]\n"
        "def loss(x):\n    y = net(x)\n    y = y * y.sum().item()\n    y = net[0].bias.sum() * y\n"
        "    return y.mean() * y.sum().item()\n"
    )
    found = asked(tmp_path, text, "aot-eager")
    (breaks,) = [r.modes["aot-eager"].breaks for r in records_of(found.records, Compilations) if "aot-eager" in r.modes]
    assert sorted(re.search(r"mine\.py:(\d+)", said)[1] for said in breaks) == ["10", "12"]
    assert set(breaks.values()) == {1}
    shown = " ".join(repr(found).split())
    assert "(mine.py:10, mine.py:12). Set `torch._dynamo.config.capture_scalar_outputs = True`" in shown
    assert "See https://" in shown


def test_each_comparison_in_a_process_begins_from_nothing(adapter, tmp_path):
    text = "def loss(x):\n    y = net(x)\n    print(end='')\n    return y.mean()\n"
    first, second = (asked(tmp_path, text, "aot-eager") for _ in range(2))
    told = [[r.modes["aot-eager"].breaks for r in records_of(each.records, Compilations)] for each in (first, second)]
    assert first.verdict.compiles == second.verdict.compiles == {"eager": 0, "aot-eager": 2}
    assert told[0] == told[1]


def test_what_a_decorator_of_a_library_wraps_is_named(adapter, tmp_path):
    text = (
        "inputs = [(torch.randn(n, 8),) for n in (3, 5, 6)]\n"
        "@torch.inference_mode()\ndef infer(x):\n    return net(x)\n"
    )
    found = asked(tmp_path, text, "aot-eager", name="infer", gradient=False)
    reasons = [made.reason for r in records_of(found.records, Compilations) for made in r.modes["aot-eager"].made]
    assert reasons[1] == "tensor 'x' size mismatch at index 0. expected 3, actual 5 (mine.py:8: infer)"


def test_what_dynamo_refuses_is_a_sentence_with_the_line(adapter, tmp_path):
    text = (
        '@torch.compile(fullgraph=True, backend="aot_eager")\ndef body(x):\n'
        "    if net(x).sum() > 0:\n        return net(x)\n    return -net(x)\ndef loss(x):\n    return body(x).mean()\n"
    )
    found = asked(tmp_path, text)
    assert list(found.verdict.refused) == ["as-written"]
    said = found.verdict.refused["as-written"]
    assert said.startswith(
        "unsupported: Unsupported: Data-dependent branching (mine.py:9: if net(x).sum() > 0:). For the"
    )
    assert "\n" not in said


def test_a_step_that_waits_is_told_so_and_what_a_call_is(adapter, tmp_path):
    text = "import time\ndef loss(x):\n    time.sleep(0.003)\n    return net(x).mean()\n"
    found = asked(tmp_path, text)
    took = r"A call of eager takes [\d.]+ ms on the wall and [\d.]+ .s of the processor: it waits"
    assert re.search(took, str(found.verdict))
    assert "loss sleeps (mine.py:9)" in repr(found)
    assert "a call is seconds of the processor" in repr(found)


def test_a_gradient_is_called_by_what_the_code_calls_the_holder_of_its_parameter(adapter):
    import torch

    net, scales = torch.nn.Linear(2, 2), [torch.nn.Parameter(torch.ones(2))]

    class Head:
        def __init__(self):
            self.inner = torch.nn.Linear(2, 1)

        def __call__(self, x):
            return self.inner(x).sum()

    head = Head()

    def loss(body, x):
        return head(body(net(x)) * scales[0])

    _, gradients = adapter.build("torch-eager", loss, 0)(torch.nn.Linear(2, 2), torch.ones(3, 2))
    assert {name: list(inside) if isinstance(inside, dict) else inside.shape for name, inside in gradients.items()} == {
        "body": ["weight", "bias"],
        "net": ["weight", "bias"],
        "inner": ["weight", "bias"],
        "scales[0]": (2,),
    }
