"""Names say what they are: a function is called as it is found, and is defined where an editor looks for it."""

from __future__ import annotations

import inspect

import dynamic
from dynamic.nn import functional
from graphs.frontends.torch import functions
from graphs.frontends.torch.methods import FunctionMethods, TorchNames

OLDER = {"Entry"}  # for Node
OTHERS = {"Size", "double", "half", "linalg", "long", "short"}  # Python's, NumPy's and a module, under PyTorch's names


def misnamed(space: object, names: set[str]) -> dict[str, str]:
    called = {name: getattr(getattr(space, name), "__name__", name) for name in names if name in dir(space)}
    return {name: other for name, other in called.items() if other != name}


def test_a_function_is_called_as_it_is_found():
    assert dynamic.lgamma.__name__ == "lgamma"
    assert misnamed(dynamic, set(dynamic.__all__) - OLDER - OTHERS) == {}
    assert misnamed(functional, set(functional.__all__)) == {}


def test_a_method_is_called_as_it_is_found():
    methods = {name for name in dir(dynamic.Tensor) if not name.startswith("_")}
    assert misnamed(dynamic.Tensor, methods) == {"ndimension": "dim"}


def test_every_function_of_an_input_is_a_method():
    first = {name: [*inspect.signature(getattr(functions, name)).parameters][:1] for name in functions.__all__}
    of_input = {name for name, parameters in first.items() if parameters == ["input"]}
    assert {name for name in of_input if not hasattr(TorchNames, name)} == set()
    listed = {name: value for name, value in vars(FunctionMethods).items() if not name.startswith("_")}
    assert listed == {name: getattr(functions, name) for name in listed}
    assert set(listed) <= of_input
