"""Programs written for PyTorch: only the import line changes, and the printed text stays the same.

The texts are what PyTorch 2.13 printed.
"""

from __future__ import annotations

import contextlib
import io
import types

import numpy as np
import pytest

import dynamic

# The branch on a sum, and its variants

TEXTBOOK = """\
import torch

x = torch.tensor([1., -1., 2.], requires_grad=True)
print(x, x.requires_grad, x.is_leaf, x.grad)
y = x * 2 if x.sum() > 0 else x - 2
print(y)
y.backward(torch.ones_like(y))
print(x.grad)

x = torch.tensor([-3., -2., -1.], requires_grad=True)
y = x * 2 if x.sum() > 0 else x - 2
print(y, y.is_leaf)
y.sum().backward()
print(x.grad)


def halve_or_triple(x):
    return x * 3 if x.sum() > 10 else x / 2


for values in ([2., 3., 4.], [4., 5., 6.]):
    x = torch.tensor(values, requires_grad=True)
    y = halve_or_triple(x)
    print(y)
    y.sum().backward()
    print(x.grad)
    x.grad.zero_()
    (y.detach() * x).sum().backward()
    print(x.grad)
"""
TEXTBOOK_PRINTED = """\
tensor([ 1., -1.,  2.], requires_grad=True) True True None
tensor([ 2., -2.,  4.], grad_fn=<MulBackward0>)
tensor([2., 2., 2.])
tensor([-5., -4., -3.], grad_fn=<SubBackward0>) False
tensor([1., 1., 1.])
tensor([1.0000, 1.5000, 2.0000], grad_fn=<DivBackward0>)
tensor([0.5000, 0.5000, 0.5000])
tensor([1.0000, 1.5000, 2.0000])
tensor([12., 15., 18.], grad_fn=<MulBackward0>)
tensor([3., 3., 3.])
tensor([12., 15., 18.])
"""

# Training by hand

REGRESSION = """\
import torch

x = torch.tensor([[0., 1.], [2., 3.], [4., 5.]])
target = torch.tensor([[1.], [3.], [5.]])
w = torch.zeros(2, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for step in range(3):
    error = x @ w + b - target
    loss = (error * error).mean()
    loss.backward()
    print(step, loss, error)
    with torch.no_grad():
        w -= 0.03125 * w.grad
        b -= 0.03125 * b.grad
    w.grad.zero_()
    b.grad.zero_()
print(w, b)
print(w.grad, w.grad.tolist(), loss.detach() < 12)
"""
REGRESSION_PRINTED = """\
0 tensor(11.6667, grad_fn=<MeanBackward0>) tensor([[-1.],
        [-3.],
        [-5.]], grad_fn=<SubBackward0>)
1 tensor(0.4057, grad_fn=<MeanBackward0>) tensor([[-0.0833],
        [ 0.4583],
        [ 1.0000]], grad_fn=<SubBackward0>)
2 tensor(0.0321, grad_fn=<MeanBackward0>) tensor([[-0.2431],
        [-0.1684],
        [-0.0938]], grad_fn=<SubBackward0>)
tensor([[0.4541],
        [0.6234]], requires_grad=True) tensor([0.1694], requires_grad=True)
tensor([[0.],
        [0.]]) [[0.0], [0.0]] tensor(True)
"""

# Names of backward ops; accumulation, hooks, in-place changes, modes

MEANINGS = """\
import torch

x = torch.tensor([1., 2.], requires_grad=True)
for value in (x + 1, 1 - x, -x, 2 / x, x ** 2, torch.exp(x), torch.tanh(x), x @ x, x.reshape(2, 1), x[0], x.clone(),
              torch.where(x > 1, x, 0.), x.mean(), torch.relu(x), x.max(), x > 1, x.detach()):
    print(value)

(x ** 3).sum().backward(retain_graph=True)
(x ** 3).sum().backward()
print(x.grad)
kept = x.grad
x.sum().backward()
print(kept is x.grad, kept)

x.grad = None
y = x * 2
y.retain_grad()
y.register_hook(lambda g: g * 10)
(y * y).sum().backward()
print(y.grad, x.grad)

x.grad = None
handle = x.register_hook(lambda g: g + 1)
(x * x).sum().backward()
handle.remove()
(x * x).sum().backward()
print(x.grad)

y = x * 2
y[0] = 5.
print(y)
y += 1
print(y)
y.zero_()
x.grad = None
y.sum().backward()
print(x.grad, y.tolist(), y.detach())

with torch.no_grad():
    print((x * 2).requires_grad, torch.is_grad_enabled())
    with torch.enable_grad():
        print((x * 2).requires_grad)
i = torch.tensor([1, 2])
print(i, i.requires_grad, i.sum(), i * 2, torch.ones(2, 2), torch.zeros(3), torch.arange(3), x.sum().item())
"""
MEANINGS_PRINTED = """\
tensor([2., 3.], grad_fn=<AddBackward0>)
tensor([ 0., -1.], grad_fn=<RsubBackward1>)
tensor([-1., -2.], grad_fn=<NegBackward0>)
tensor([2., 1.], grad_fn=<MulBackward0>)
tensor([1., 4.], grad_fn=<PowBackward0>)
tensor([2.7183, 7.3891], grad_fn=<ExpBackward0>)
tensor([0.7616, 0.9640], grad_fn=<TanhBackward0>)
tensor(5., grad_fn=<DotBackward0>)
tensor([[1.],
        [2.]], grad_fn=<ViewBackward0>)
tensor(1., grad_fn=<SelectBackward0>)
tensor([1., 2.], grad_fn=<CloneBackward0>)
tensor([0., 2.], grad_fn=<WhereBackward0>)
tensor(1.5000, grad_fn=<MeanBackward0>)
tensor([1., 2.], grad_fn=<ReluBackward0>)
tensor(2., grad_fn=<MaxBackward1>)
tensor([False,  True])
tensor([1., 2.])
tensor([ 6., 24.])
True tensor([ 7., 25.])
tensor([40., 80.]) tensor([ 80., 160.])
tensor([5., 9.])
tensor([5., 4.], grad_fn=<CopySlices>)
tensor([6., 5.], grad_fn=<AddBackward0>)
tensor([0., 0.]) [0.0, 0.0] tensor([0., 0.])
False False
True
tensor([1, 2]) False tensor(3) tensor([2, 4]) tensor([[1., 1.],
        [1., 1.]]) tensor([0., 0., 0.]) tensor([0, 1, 2]) 3.0
"""

PROGRAMS = {
    "textbook": (TEXTBOOK, TEXTBOOK_PRINTED),
    "regression": (REGRESSION, REGRESSION_PRINTED),
    "meanings": (MEANINGS, MEANINGS_PRINTED),
}
each_program = pytest.mark.parametrize("name", PROGRAMS)


def run(program: str, module: str) -> str:
    """What a program prints, with its import line naming another module."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program.replace("import torch", f"import {module} as torch"), "<program>", "exec"), {})
    return printed.getvalue()


@each_program
def test_prints_what_pytorch_printed(name):
    program, expected = PROGRAMS[name]
    assert run(program, "dynamic") == expected


@pytest.mark.peers
@each_program
def test_pytorch_still_prints_that(name):
    pytest.importorskip("torch")
    program, expected = PROGRAMS[name]
    assert run(program, "torch") == expected


def test_pytorch_names_and_words_mean_the_same():
    x = dynamic.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    same = np.testing.assert_array_equal
    same(x.sum(dim=1, keepdim=True), [[6.0], [15.0]])
    same(dynamic.sum(x, dim=0), [5.0, 7.0, 9.0])
    same(dynamic.softmax(x, dim=1), dynamic.softmax(x, axis=1))
    same(dynamic.cat([x, x], dim=1), np.concatenate([x.numpy(), x.numpy()], axis=1))
    same(dynamic.stack([x, x], dim=2), np.stack([x.numpy(), x.numpy()], axis=2))
    same(x.view(3, -1), x.numpy().reshape(3, 2))
    same(x.unsqueeze(1).expand(-1, 4, -1), np.repeat(x.numpy()[:, None], 4, axis=1))
    same(x.permute(1, 0), x.numpy().T)
    same(x.t().mm(x), x.numpy().T @ x.numpy())
    same(x.exp().log().pow(2), np.log(np.exp(x.numpy())) ** 2)
    assert x.dim() == 2
    assert [t.dtype.name for t in (x.double(), x.float(), x.long())] == ["float64", "float32", "int64"]


def test_no_module_stands_where_pytorch_has_a_function():
    hidden = {"mode", "tensor", "pool", "backward", "save", "load", "record"}  # of these, names of files or near them
    assert not [name for name in hidden if isinstance(getattr(dynamic, name, None), types.ModuleType)]
