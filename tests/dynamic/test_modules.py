"""Modules: what they register, save and refuse, and what layers compute, by formulas in NumPy."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import dynamic
import dynamic as torch
import graphs
import static
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import DTypeError, GraphError, InplaceError, OutOfRangeError, ShapeError
from graphs.testing import check_grads

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 4))


def tensor(*shape):
    return torch.tensor(RNG.standard_normal(shape))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.zeros(3))
        self.register_buffer("note", torch.zeros(1), persistent=False)
        self.tail = nn.Sequential(nn.ReLU(), nn.Linear(3, 2, bias=False))
        self.width = 3

    def forward(self, x):
        return self.tail(self.first(x) * self.scale + self.shift)


NAMES = ["scale", "first.weight", "first.bias", "tail.1.weight"]


def test_importing_dynamic_loads_no_module():
    code = "import sys, dynamic as torch; a = {m for m in sys.modules if m.startswith('dynamic.')}; torch.nn.Linear; "
    code += "torch.optim.SGD; torch.utils.data.DataLoader; "
    code += "print([m for m in a if m.split('.')[1] in ('nn', 'optim', 'utils')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="stft"):
        _ = torch.stft


def test_what_is_assigned_is_registered():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["shift", "note"]
    assert list(net.state_dict()) == ["scale", "shift", "first.weight", "first.bias", "tail.1.weight"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "tail", "tail.0", "tail.1"]
    assert [name for name, _ in net.named_children()] == ["first", "tail"]
    assert isinstance(net.scale, nn.Parameter)
    assert isinstance(net.scale, dynamic.Tensor)
    assert not isinstance(net.shift, nn.Parameter)
    assert net.get_parameter("tail.1.weight") is net.tail[1].weight
    assert net.get_submodule("tail.1") is net.tail[1]
    assert net.get_buffer("shift") is net.shift
    del net.scale
    assert [name for name, _ in net.named_parameters()] == NAMES[1:]


def test_what_is_assigned_wrongly_is_refused():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(2, 2)

    class Forgetful(nn.Module):
        def __init__(self):
            self.width = 3

    with pytest.raises(AttributeError, match=r"super\(\)\.__init__"):
        Early()
    with pytest.raises(AttributeError, match=r"super\(\)\.__init__"):
        Forgetful()(1)
    net = Net()
    with pytest.raises(TypeError, match="'scale' is a parameter"):
        net.scale = torch.ones(3)
    with pytest.raises(KeyError, match="dot"):
        net.register_buffer("a.b", torch.ones(1))
    with pytest.raises(KeyError, match="there already"):
        net.register_buffer("width", torch.ones(1))
    with pytest.raises(TypeError, match="no parameter"):
        net.register_parameter("other", torch.ones(1))
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
        _ = net.missing
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)
    with pytest.raises(DTypeError, match="floating"):
        nn.Parameter(np.arange(3))


def test_a_tied_parameter_is_listed_once_and_saved_under_both_names():
    net = nn.ModuleDict({"a": nn.Linear(3, 3, bias=False), "b": nn.Linear(3, 3, bias=False)})
    net["b"].weight = net["a"].weight
    assert [name for name, _ in net.named_parameters()] == ["a.weight"]
    assert list(net.state_dict()) == ["a.weight", "b.weight"]
    x = tensor(2, 3).float()
    doubled = nn.functional_call(net["b"], {"weight": net["a"].weight * 2}, (x,))
    np.testing.assert_allclose(doubled.detach().numpy(), 2 * net["a"](x).detach().numpy(), rtol=1e-6)
    twin = copy.deepcopy(net)
    assert twin["a"].weight is twin["b"].weight
    assert twin["a"].weight is not net["a"].weight
    assert isinstance(twin["a"].weight, nn.Parameter)


def test_copies_are_apart_and_keep_their_parameters():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert [name for name, _ in other.named_parameters()] == NAMES
        assert all(isinstance(param, nn.Parameter) and param.requires_grad for param in other.parameters())
        with dynamic.no_grad():
            other.scale.fill_(7)
        assert net.scale.tolist() == [1, 1, 1]


def test_state_dicts_are_copied_and_checked():
    net, other = Net(), Net()
    assert net.load_state_dict(other.state_dict()) == ([], [])
    np.testing.assert_array_equal(net.first.weight.detach().numpy(), other.first.weight.detach().numpy())
    state = dict(other.state_dict())
    del state["scale"]
    state["stranger"] = torch.ones(1)
    with pytest.raises(RuntimeError, match="missing_keys: scale; unexpected_keys: stranger"):
        net.load_state_dict(state)
    assert net.load_state_dict(state, strict=False) == (["scale"], ["stranger"])
    state["shift"] = torch.ones(4)
    with pytest.raises(RuntimeError, match=r"size mismatch for shift: \(4,\) in the state dict, \(3,\) in the module"):
        net.load_state_dict(state, strict=False)
    before = net.scale
    net.load_state_dict(other.state_dict(), assign=True)
    assert net.scale is not before


def test_modes_dtypes_and_what_is_not_there():
    net = nn.Sequential(Net(), nn.Dropout())
    assert all(module.training for module in net.modules())
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    assert {param.dtype for param in net.double().parameters()} == {np.dtype(np.float64)}
    assert {b.dtype for b in net.to(torch.float32).buffers()} == {np.dtype(np.float32)}
    assert net.to("cpu") is net
    with pytest.raises(ValueError, match="cuda"):
        net.to("cuda")
    with pytest.raises(GraphError, match="no device but the CPU"):
        net.cuda()
    with pytest.raises(GraphError, match=r"static\.jit"):
        net.compile()
    for package in (nn, F, torch.optim):
        with pytest.raises(AttributeError, match="NotThere"):
            _ = package.NotThere
    net.requires_grad_(False)
    assert not any(param.requires_grad for param in net.parameters())


def test_hooks_see_and_replace():
    layer, seen = nn.Linear(4, 2), []
    before = layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    after = layer.register_forward_hook(lambda module, args, output: seen.append(args[0]) or output + 1)
    x = tensor(3, 4).float()
    expected = 2 * x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy() + 1
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-5)
    np.testing.assert_array_equal(seen[0].numpy(), 2 * x.numpy())
    before.remove(), after.remove(), after.remove()
    np.testing.assert_allclose(layer(x).detach().numpy(), layer.forward(x).detach().numpy())


class _Pair(nn.Module):
    def forward(self, a, count, b):
        return a * count, b.exp()


def as_lists(gradients):
    return [None if gradient is None else gradient.tolist() for gradient in gradients]


def test_backward_hooks_get_what_pytorchs_get():
    pair, seen, order = _Pair(), [], []
    note = pair.register_full_backward_hook(lambda _, inputs, outputs: seen.append(as_lists((*inputs, *outputs))))
    pair.register_full_backward_hook(lambda *_: order.append(len(seen)), prepend=True)
    a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([0.0, 0.0])
    left, right = pair(a, 3, b)
    assert (left.requires_grad, right.requires_grad) == (True, False)
    (left.sum() + right.sum()).backward()
    pair(a, 3, b.requires_grad_())[0].sum().backward()  # the second result reaches no loss
    assert seen == [[[3, 3], None, [0, 0], [1, 1], None]] * 2
    assert order == [0, 1]
    note.remove()
    pair.register_full_backward_hook(lambda _, inputs, __: (inputs[0] * 10, None, inputs[2] + 1))
    pair.register_full_backward_pre_hook(lambda _, outputs: (outputs[0] * 2, outputs[1]))
    a.grad = b.grad = None
    left, right = pair(a, 3, b)
    (left.sum() + right.sum()).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([60, 60], [2, 2])
    pair.register_full_backward_hook(lambda _, inputs, __: inputs[:1])
    with pytest.raises(GraphError, match="gave 1 gradients for 3"):
        pair(a, 3, b)[0].sum().backward()


def test_an_older_backward_hook_gets_the_gradients_of_results_alone():
    layer, seen = nn.Linear(4, 2), []
    x = tensor(3, 4).float().requires_grad_()
    note = layer.register_backward_hook(lambda _, __, outputs: seen.append(as_lists(outputs)))
    layer(x).sum().backward()
    assert seen == [[[[1, 1]] * 3]]
    note.remove()
    for hook in (lambda _, inputs, __: inputs[0] is None, lambda *_: (x,)):
        note = layer.register_backward_hook(hook)
        with pytest.raises(GraphError, match="use register_full_backward_hook"):
            layer(x).sum().backward()
        note.remove()


def test_a_backward_hook_without_inputs_that_are_trained_gets_the_gradient_of_the_result():
    layer, seen = nn.Linear(4, 2), []
    layer.register_full_backward_hook(lambda _, inputs, outputs: seen.append(as_lists((*inputs, *outputs))))
    with torch.no_grad():
        layer(tensor(3, 4).float())
    layer(tensor(3, 4).float()).sum().backward()
    assert seen == [[None, [[1, 1]] * 3]]


def test_backward_hooks_run_in_the_trace_of_a_training_step():
    def run(is_compiled):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
        model[1].register_full_backward_hook(lambda _, inputs, __: (inputs[0].clamp(-0.1, 0.1),))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        step = static.trace_step(step, model, optimizer) if is_compiled else step
        return [float(step(torch.ones(3, 4) * number)) for number in range(1, 4)]

    np.testing.assert_allclose(run(True), run(False), rtol=1e-5)


def test_containers_are_lists_and_dicts():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    layers.append(nn.ReLU())
    layers.insert(0, nn.Tanh())
    assert [type(one).__name__ for one in layers] == ["Tanh", "Linear", "Linear", "Linear", "ReLU"]
    assert list(layers.state_dict())[:2] == ["1.weight", "1.bias"]
    assert isinstance(layers[1:3], nn.ModuleList)
    assert len(layers[1:3]) == 2
    assert isinstance(layers.pop(), nn.ReLU)
    layers[0] = nn.GELU()
    assert isinstance(layers[0], nn.GELU)
    assert layers[-1] in layers
    del layers[0]
    assert len(layers) == 3
    with pytest.raises(IndexError, match="out of range"):
        layers[3]
    named = nn.Sequential(OrderedDict(a=nn.Linear(2, 2), b=nn.ReLU()))
    assert list(named.state_dict()) == ["a.weight", "a.bias"]
    assert isinstance(named[:1], nn.Sequential)
    assert list(dict(named[1:].named_children())) == ["b"]
    with pytest.raises(TypeError, match="no module"):
        nn.Sequential(np.tanh)
    params = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1))])
    assert [name for name, _ in params.named_parameters()] == ["0", "1"]
    nested = nn.ParameterList([nn.ParameterList([torch.ones(2)]), torch.ones(1)])
    nested.append(nn.ParameterDict({"x": torch.ones(3)}))
    assert [name for name, _ in nested.named_parameters()] == ["1", "0.0", "2.x"]
    assert repr(nested).startswith(
        "ParameterList(\n    (0): Object of type: ParameterList\n    (1): Parameter containing"
    )
    table = nn.ParameterDict({"x": torch.ones(2)})
    assert "x" in table
    assert [name for name, _ in table.items()] == ["x"]
    with pytest.raises(KeyError):
        table["y"]


def test_members_of_some_modules():
    """As libraries of meta-learning ask for the parameters of their own classes."""
    model = nn.Sequential(nn.Linear(2, 1), nn.Sequential(nn.Conv1d(1, 1, 1)))
    found = model._named_members(lambda m: m._parameters.items() if isinstance(m, nn.Linear) else [], recurse=True)
    assert [name for name, _ in found] == ["0.weight", "0.bias"]


def test_the_text_of_a_module_is_pytorchs():
    text = repr(nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.Dropout(0.5))))
    assert text == (
        "Sequential(\n  (0): Linear(in_features=4, out_features=3, bias=True)\n  (1): Sequential(\n"
        "    (0): Dropout(p=0.5, inplace=False)\n  )\n)"
    )
    line = "(0): Parameter containing: [torch.float32 of size 2x3]"
    assert repr(nn.ParameterList([torch.ones(2, 3)])) == f"ParameterList(  {line})"
    assert (
        repr(nn.ParameterList([torch.ones(2, 3)] * 2))
        == f"ParameterList(\n    {line}\n    {line.replace('(0', '(1')}\n)"
    )
    assert repr(nn.ParameterDict({"a": torch.ones(2)})) == (
        "ParameterDict(  (a): Parameter containing: [torch.FloatTensor of size 2])"
    )
    for module, wanted in {
        nn.ELU(): "ELU(alpha=1.0)",
        nn.Hardtanh(inplace=True): "Hardtanh(min_val=-1.0, max_val=1.0, inplace=True)",
        nn.Softplus(): "Softplus(beta=1.0, threshold=20.0)",
        nn.GLU(): "GLU(dim=-1)",
        nn.AlphaDropout(0.2): "AlphaDropout(p=0.2, inplace=False)",
        nn.Unfold(2): "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)",
    }.items():
        assert repr(module) == wanted


# What layers compute ----------------------------------------------------------------------------------------------


def test_linear_is_a_product_and_a_shift():
    layer = nn.Linear(4, 3).double()
    expected = X @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(torch.tensor(X)).detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(4, 3), nn.LayerNorm(4), nn.RNN(4, 3), nn.LSTM(4, 3), nn.GRU(4, 3, 2, bidirectional=True),
        nn.BatchNorm1d(4, track_running_stats=False), nn.PReLU(), nn.Softplus(), nn.GELU("tanh"), nn.SELU(), nn.GLU(),
        nn.RMSNorm(4), nn.Softmax(-1),
    ],
    ids=lambda module: type(module).__name__,
)  # fmt: skip
def test_gradients_of_layers_are_those_of_finite_differences(module):
    module = copy.deepcopy(module).double()
    params = {name: param.detach().numpy().copy() for name, param in module.named_parameters()}

    def loss(params, x):
        output = nn.functional_call(module, params, (x,))
        output = output[0] if isinstance(output, tuple) else output
        return dynamic.sum(output * np.cos(np.arange(np.prod(output.shape)).reshape(output.shape)))

    check_grads(loss, [params, X], engine=dynamic)


def test_batch_norm_keeps_running_statistics():
    layer = nn.BatchNorm1d(4, momentum=0.25).double()
    found = layer(torch.tensor(X)).detach().numpy()
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.25 * X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.75 + 0.25 * X.var(0, ddof=1), rtol=1e-12)
    assert layer.num_batches_tracked.item() == 1
    kept = layer.running_mean
    layer.eval()
    expected = (X - kept.numpy()) / np.sqrt(layer.running_var.numpy() + 1e-5)
    np.testing.assert_allclose(layer(torch.tensor(X)).detach().numpy(), expected, rtol=1e-12)
    assert layer.running_mean is kept
    with pytest.raises(ShapeError, match="axes"):
        nn.BatchNorm2d(4)(torch.tensor(X))
    with pytest.raises(ValueError, match="one value per channel"):
        nn.BatchNorm1d(4)(torch.ones(1, 4))


def test_dropout_keeps_the_mean_and_is_the_same_after_the_same_seed():
    layer, x = nn.Dropout(0.25), torch.ones(200, 500)
    torch.manual_seed(3)
    first = layer(x).numpy()
    assert set(np.unique(first)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(first.mean() - 1) < 0.01
    assert np.any(layer(x).numpy() != first)
    torch.manual_seed(3)
    np.testing.assert_array_equal(layer(x).numpy(), first)
    assert layer.eval()(x) is x
    channels = nn.Dropout2d(0.5)(torch.ones(8, 16, 3, 3)).numpy()
    assert np.all(channels == channels[:, :, :1, :1])
    with pytest.raises(ValueError, match="probability"):
        nn.Dropout(1.5)(x)


def test_a_recurrent_layer_is_its_cell_step_by_step():
    xs = tensor(6, 2, 4)
    layer, cell = nn.GRU(4, 3).double(), nn.GRUCell(4, 3).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    outputs, last = layer(xs)
    state = None
    for t in range(6):
        state = cell(xs[t], state)
        np.testing.assert_allclose(outputs[t].detach().numpy(), state.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(last[0].detach().numpy(), state.detach().numpy(), rtol=1e-10)


def test_attention_that_may_look_back_alone_does_not_see_what_comes():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=np.float64)
    x = tensor(2, 5, 8)
    changed = x.numpy().copy()
    changed[:, 3:] += 1
    first, second = (layer(torch.tensor(v), src_mask=mask).detach().numpy() for v in (x.numpy(), changed))
    np.testing.assert_allclose(first[:, :3], second[:, :3], rtol=1e-12)
    assert not np.allclose(first[:, 3:], second[:, 3:])


def test_weights_of_attention_add_up_to_one():
    layer = nn.MultiheadAttention(8, 2, batch_first=True).double()
    padding = torch.tensor(np.array([[False] * 4, [False, False, True, True]]))
    _, weights = layer(tensor(2, 3, 8), *[tensor(2, 4, 8)] * 2, key_padding_mask=padding)
    np.testing.assert_allclose(weights.detach().numpy().sum(-1), 1, rtol=1e-12)
    assert np.all(weights.detach().numpy()[1, :, 2:] == 0)


def test_the_row_of_padding_is_zero_and_stays_so():
    layer = nn.Embedding(5, 3, padding_idx=1)
    assert layer.weight[1].tolist() == [0, 0, 0]
    layer(torch.tensor([0, 1, 1, 4])).sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy().sum(1), [3, 0, 0, 0, 3])
    with pytest.raises(OutOfRangeError, match="index 5 is not from 0 to 4"):
        layer(torch.tensor([5]))
    with pytest.raises(OutOfRangeError, match="index -1"):
        layer(torch.tensor([-1]))


def test_a_label_that_is_no_class_is_refused_unless_it_is_ignored():
    logits = tensor(3, 4)
    with pytest.raises(OutOfRangeError, match="index 4"):
        F.cross_entropy(logits, torch.tensor([0, 1, 4]))
    with pytest.raises(OutOfRangeError, match="index -1"):
        F.cross_entropy(logits, torch.tensor([0, 1, -1]))
    both = F.cross_entropy(logits, torch.tensor([0, -100, 3]), reduction="none").numpy()
    assert both[1] == 0
    assert both[0] > 0


REFUSED = [
    (lambda: nn.LSTM(3, 2, proj_size=1), "proj_size"),
    (lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True), "add_bias_kv"),
    (lambda: F.scaled_dot_product_attention(*[tensor(2, 3, 4)] * 3, enable_gqa=True), "enable_gqa"),
    (lambda: F.binary_cross_entropy(tensor(3), tensor(3, 1)), "shape"),
    (lambda: nn.functional_call(nn.Linear(2, 2), {"other": tensor(2)}, (tensor(2),)), "'other'"),
    (lambda: F.gelu(tensor(2), approximate="erf"), "approximate"),
]


@pytest.mark.parametrize(("call", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_what_is_not_supported_is_refused_by_name(call, told):
    with pytest.raises(GraphError, match=told):
        call()


def test_an_activation_in_place_changes_its_input():
    x = torch.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0, 2]
    with pytest.raises(InplaceError, match="leaf"):
        F.relu(torch.tensor([1.0], requires_grad=True), inplace=True)


def test_the_gradient_of_a_functional_call_reaches_what_was_given():
    layer = nn.Linear(4, 2).double()
    params = {
        name: torch.tensor(param.detach().numpy().copy()).requires_grad_() for name, param in layer.named_parameters()
    }
    nn.functional_call(layer, params, (torch.tensor(X),), strict=True).sum().backward()
    np.testing.assert_allclose(params["weight"].grad.numpy(), np.tile(X.sum(0), (2, 1)), rtol=1e-12)
    assert layer.weight.grad is None
    with pytest.raises(GraphError, match="no value is given for bias"):
        nn.functional_call(layer, {"weight": params["weight"]}, (torch.tensor(X),), strict=True)


@pytest.mark.parametrize(
    ("size_average", "reduce", "reduction"),
    [(None, None, "sum"), (True, None, "mean"), (False, None, "sum"), (None, False, "none"), (False, True, "sum")],
)
def test_the_older_words_for_a_reduction(size_average, reduce, reduction):
    x, y = tensor(3), tensor(3) * 2
    old = F.mse_loss(x, y, size_average, reduce, "sum")
    np.testing.assert_array_equal(old.detach(), F.mse_loss(x, y, reduction=reduction).detach())
    assert float(nn.L1Loss(size_average=False)(x, y).detach()) == float(F.l1_loss(x, y, reduction="sum").detach())


# What a module keeps -------------------------------------------------------------------------------------------------


class Counting(nn.Module):
    """Saves its parameter one larger, and a number beside it."""

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self.weight, self.number = nn.Parameter(dynamic.tensor(5.0)), number

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = self.weight.data + 1

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        state_dict = {**state_dict, prefix + "weight": state_dict[prefix + "weight"] - 1}
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def get_extra_state(self) -> Any:
        return {"number": self.number}

    def set_extra_state(self, state: Any) -> None:
        self.number = state["number"]


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_parameter_is_a_parameter(copied: Any) -> None:
    original = nn.Parameter(dynamic.ones(2))
    original.sum().backward()
    for made in (copied(original), copied([original])[0], copied({"a": nn.ParameterList([original])})["a"][0]):
        assert isinstance(made, nn.Parameter)
        assert made is not original
        assert made.grad is None
        module = nn.Module()
        module.w = made
        assert [name for name, _ in module.named_parameters()] == ["w"]
    frozen = copied(nn.Parameter(dynamic.ones(1), requires_grad=False))
    assert (isinstance(frozen, nn.Parameter), frozen.requires_grad) == (True, False)
    plain = copied(dynamic.ones(2, requires_grad=True))
    assert (isinstance(plain, nn.Parameter), plain.requires_grad) == (False, True)


def test_what_a_class_saves_itself_comes_back() -> None:
    one = nn.Sequential(Counting(7), nn.Linear(1, 1))
    saved = one.state_dict()
    assert list(saved) == ["0.weight", "0._extra_state", "1.weight", "1.bias"]
    assert (saved["0.weight"].item(), saved["0._extra_state"]) == (6.0, {"number": 7})
    other = nn.Sequential(Counting(), nn.Linear(1, 1))
    other[0].weight.data.zero_()
    assert other.load_state_dict(saved) == ([], [])
    assert (other[0].weight.item(), other[0].number) == (5.0, 7)
    assert other[1].weight.item() == one[1].weight.item()
    del saved["0._extra_state"], saved["1.bias"]
    saved["0.more"] = saved["2.weight"] = saved["1.bias.x"] = dynamic.ones(1)
    assert other.load_state_dict(saved, strict=False) == (
        ["0._extra_state", "1.bias"],
        ["2.weight", "0.more", "1.bias.x"],
    )


def test_nothing_is_loaded_where_something_does_not_fit() -> None:
    module = nn.Sequential(Counting(1), nn.Linear(2, 1))
    saved = {**module.state_dict(), "0._extra_state": {"number": 9}, "1.bias": dynamic.ones(3)}
    saved["1.weight"] = dynamic.full((1, 2), 9.0)
    with pytest.raises(RuntimeError, match=r"size mismatch for 1\.bias: \(3,\)"):
        module.load_state_dict(saved)
    assert module[0].number == 1
    assert 9.0 not in module[1].weight.tolist()[0]


def test_statistics_that_are_no_longer_tracked_stay() -> None:
    x = dynamic.arange(8.0).reshape(4, 2)
    norm = nn.BatchNorm1d(2)
    norm.track_running_stats = False
    assert abs(norm(x).mean().item()) < 1e-6
    assert (norm.num_batches_tracked.item(), norm.running_mean.tolist()) == (0, [0, 0])
    np.testing.assert_allclose(norm.eval()(x).numpy(force=True), x.numpy(), rtol=1e-4)
    instance = nn.InstanceNorm1d(2, track_running_stats=True)
    instance.track_running_stats = False
    assert abs(instance.eval()(x[None].transpose(1, 2)).mean().item()) < 1e-6


def test_hooks_see_what_is_saved_and_loaded() -> None:
    seen: list[Any] = []
    net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    net.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append(("saving", module is net, prefix, keep)))
    net[1].register_state_dict_post_hook(lambda module, saved, prefix, meta: seen.append((prefix, sorted(saved), meta)))
    saved = net.state_dict()
    names = ["0.bias", "0.weight", "1.bias", "1.weight"]
    assert seen == [("saving", True, "", False), ("1.", names, {"version": 1})]
    seen.clear()
    first, second = net
    first.register_load_state_dict_pre_hook(lambda module, values, prefix, *_: seen.append((module is first, prefix)))
    second._register_load_state_dict_pre_hook(lambda values, prefix, *_: values.pop("old"))
    net.register_load_state_dict_post_hook(lambda module, keys: seen.append((module[0].weight.item(), keys)))
    net.register_load_state_dict_post_hook(lambda *_: seen.append("removed")).remove()
    values = {**saved, "0.weight": dynamic.full((1, 1), 4.0), "old": dynamic.ones(1)}
    assert net.load_state_dict(values, strict=False) == ([], ["old"])
    assert seen == [(True, "0."), (4.0, ([], ["old"]))]
    assert "old" in values  # a hook changes a copy


def test_a_hook_may_replace_what_is_saved_and_excuse_what_is_missing() -> None:
    layer = nn.Linear(1, 1)
    layer._register_state_dict_hook(lambda module, saved, prefix, meta: {"w": saved["weight"]})
    assert list(pickle.loads(pickle.dumps(nn.Linear(1, 1))).state_dict()) == ["weight", "bias"]
    assert list(layer.state_dict()) == ["w"]
    layer.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    assert layer.load_state_dict({"weight": dynamic.full((1, 1), 3.0)}) == ([], [])
    assert layer.weight.item() == 3.0


def test_what_is_registered_can_be_changed_by_name() -> None:
    layer = nn.BatchNorm1d(2)
    weight = layer._parameters["weight"]
    del layer._parameters["weight"]
    layer.register_parameter("w", weight)
    assert [name for name, _ in layer.named_parameters()] == list(layer._parameters) == ["bias", "w"]
    assert not hasattr(layer, "weight")
    layer._buffers["running_mean"] = dynamic.full((2,), 5.0)
    layer._modules["inner"] = nn.Linear(1, 1)
    assert (layer.running_mean.tolist(), layer.inner is layer._modules["inner"]) == ([5, 5], True)
    assert layer._parameters.get("running_mean") is None
    assert list(layer.state_dict()) == [
        *("bias", "w", "running_mean", "running_var", "num_batches_tracked"),
        *("inner.weight", "inner.bias"),
    ]


class Mixin:
    def __init__(self, *args: Any) -> None:
        super().__init__()
        self.given = args


class Both(nn.Module, Mixin):
    call_super_init = True


def test_the_other_bases_of_a_module_are_made_where_it_says_so() -> None:
    assert Both(1, 2).given == (1, 2)
    with pytest.raises(TypeError, match=r"Module.__init__\(\) of a Module takes no arguments"):
        nn.Module(3)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_computes_its_own_weight(copied: Any) -> None:
    one = nn.utils.weight_norm(nn.Linear(2, 2, bias=False))
    other = copied(one)
    with dynamic.no_grad():
        other.weight_g.mul_(4)
    x = dynamic.ones(1, 2)
    assert other(x).tolist() == (4 * one(x)).tolist()
    spectral = nn.utils.spectral_norm(nn.Linear(2, 2)).eval()
    assert copied(spectral)(x).tolist() == spectral(x).tolist()
    nn.utils.remove_weight_norm(other)
    assert [name for name, _ in other.named_parameters()] == ["weight"]


def test_a_device_may_surround_what_is_made() -> None:
    with torch.device("cpu") as device:
        assert torch.ones(1).device == device


@pytest.mark.parametrize("low", [-0.5, math.nan])
def test_hardtanh_has_no_gradient_at_its_limits_in_either_engine(low):
    """A limit that is NaN limits nothing; the graph's passes write the op as a clip."""
    x = np.array([-math.inf, -2, -0.5, -0.25, 0, 1.5, 2, 7, math.inf], np.float32)

    def loss(x):
        return graphs.sum(F.hardtanh(x, low, 2.0) * 3)

    inside = ((x > low) | math.isnan(low)) & (x < 2) & (x > -math.inf)
    expected = np.minimum(x if math.isnan(low) else np.maximum(x, np.float32(low)), 2)
    np.testing.assert_array_equal(F.hardtanh(torch.tensor(x), low, 2.0).numpy(), expected)
    for engine in (static, torch):
        _, gradient = engine.value_and_grad(loss)(x)
        np.testing.assert_array_equal(np.asarray(gradient), np.where(inside, 3, 0))
