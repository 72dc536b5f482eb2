"""PyTorch's databases of modules and of optimizers: all ordinary samples give PyTorch's numbers, or are refused."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import dynamic
from graphs.errors import GraphError
from tests.helpers.together import check_each
from tests.peers.opdb.sides import OutsideError, Side

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

MISSING_MODULES = {
    "FractionalMaxPool2d", "FractionalMaxPool3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LinearCrossEntropyLoss",
}  # fmt: skip
MISSING_OPTIMIZERS = {"SparseAdam"}


class MissingError(Exception):
    """A name that is not there."""


def near(ours: Any, theirs: Any) -> None:
    """Raise for other shapes or numbers; no gradient is one of zeros. PyTorch's ASGD holds its rate in float32."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for mine, wanted in zip(ours, theirs, strict=True):
            near(mine, wanted)
    elif theirs is not None and ours is not None:
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)
    else:
        assert not np.any(theirs if ours is None else ours)


# Modules ------------------------------------------------------------------------------------------------------------


def module_samples(info: Any) -> Iterator[tuple[bool, Any]]:
    for training in (True, False):
        torch.manual_seed(0)
        words = {"device": "cpu", "dtype": torch.float64, "requires_grad": True, "training": training}
        for sample in info.module_inputs_func(info, **words):
            yield training, sample


def constructed(side: Side, package: Any, name: str, sample: Any, training: bool) -> Any:
    given = sample.constructor_input
    if any(map(callable, (*given.args, *given.kwargs.values()))):
        raise OutsideError("a module or a function of PyTorch's as an argument")
    words = {word: side.made(value) for word, value in given.kwargs.items() if word not in ("device", "dtype")}
    if not hasattr(package, name):
        raise MissingError(name)
    return getattr(package, name)(*map(side.made, given.args), **words).double().train(training)


def called(side: Side, module: Any, sample: Any) -> tuple[Any, Any]:
    """What a module gives, and the gradients in the inputs and in its parameters by name."""
    given = sample.forward_input
    inputs = side.made((tuple(given.args), given.kwargs), with_gradient=True)
    result = module(*inputs[0], **inputs[1])
    outputs = [out for out in side.tensors(result) if out.requires_grad]
    leaves = [leaf for leaf in side.tensors(inputs) if leaf.requires_grad]
    leaves += [param for _, param in sorted(module.named_parameters())]
    if outputs:
        sum((out * side._weights(out)).sum() for out in outputs).backward()  # type: ignore[union-attr]
    arrays = [out.detach().numpy() for out in side.tensors(result)]
    return arrays, [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]


def check_module(info: Any, training: bool, sample: Any) -> None:
    name = info.module_cls.__name__
    theirs, ours = Side(torch), Side(dynamic)
    wanted = constructed(theirs, torch.nn, name, sample, training)
    module = constructed(ours, dynamic.nn, name, sample, training)
    module.load_state_dict({key: ours.made(value) for key, value in wanted.state_dict().items()})
    near(called(ours, module, sample), called(theirs, wanted, sample))
    for key, value in wanted.state_dict().items():
        near(module.state_dict()[key].numpy(), value.numpy())


def verdicts(cases: list[tuple[str, Any]]) -> Counter[str]:
    """How many cases come to each verdict. Raises what differs, all together, each with its name."""
    counts: Counter[str] = Counter()

    def check(case: tuple[str, Any]) -> None:
        try:
            case[1]()
        except MissingError as error:
            counts[f"missing {error}"] += 1
        except (OutsideError, GraphError):
            counts["refused"] += 1  # what is refused is no wrong number
        else:
            counts["same"] += 1

    check_each(cases, check, lambda case: case[0])
    return counts


def missing(counts: Counter[str]) -> set[str]:
    return {verdict.removeprefix("missing ") for verdict in counts if verdict.startswith("missing ")}


def module_cases() -> list[tuple[str, Any]]:
    return [
        (info.module_cls.__name__, functools.partial(check_module, info, training, sample))
        for info in module_db
        for training, sample in module_samples(info)
    ]


def test_modules_give_pytorchs_numbers() -> None:
    counts = verdicts(module_cases())
    assert missing(counts) == MISSING_MODULES
    assert counts["same"] > 900


def test_a_wrong_module_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic.nn, "Tanhshrink", dynamic.nn.Tanh)
    with pytest.raises(AssertionError):
        verdicts([case for case in module_cases() if case[0] == "Tanhshrink"][:1])


# Optimizers ---------------------------------------------------------------------------------------------------------

STEPS = 20


def trained(engine: Any, optimizers: Any, name: str, words: dict[str, Any]) -> list[Any]:
    """Parameters after each of some steps on a smooth loss that is no parabola, whose steps magnify no rounding."""
    rng = np.random.default_rng(0)
    params = [engine.tensor(rng.standard_normal(shape)).requires_grad_() for shape in ((3, 2), (4,), ())]
    if not hasattr(optimizers, name):
        raise MissingError(name)
    optimizer, seen = getattr(optimizers, name)(params, **words), []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum((param**2 + 1).sqrt().sum() + ((param - 0.3) ** 2).mean() for param in params)
        loss.backward()
        return loss

    for _ in range(STEPS):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        seen.append([param.detach().numpy().copy() for param in params])
    return seen


def check_optimizer(name: str, sample: Any) -> None:
    words = {word: Side(dynamic).made(value) for word, value in sample.kwargs.items()}
    near(trained(dynamic, dynamic.optim, name, words), trained(torch, torch.optim, name, sample.kwargs))


def optimizer_cases() -> list[tuple[str, Any]]:
    samples = [(info.optim_cls.__name__, one) for info in optim_db for one in info.optim_inputs_func(device="cpu")]
    return [(f"{name}: {one.desc}", functools.partial(check_optimizer, name, one)) for name, one in samples]


def test_twenty_steps_of_optimizers_are_pytorchs() -> None:
    counts = verdicts(optimizer_cases())
    assert missing(counts) == MISSING_OPTIMIZERS
    assert counts["same"] > 60


def test_a_wrong_optimizer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic.optim, "Adam", dynamic.optim.NAdam)
    with pytest.raises(AssertionError):
        verdicts([case for case in optimizer_cases() if case[0].startswith("Adam:")][:1])
