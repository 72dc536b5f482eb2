"""Names say what they are: a function is called as it is found, and is defined where an editor looks for it."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic.nn import functional
from graphs.errors import ArgumentError
from graphs.frontends.torch import names
from graphs.frontends.torch.arithmetic import of_op
from graphs.frontends.torch.methods import TorchMethods
from graphs.op import registered_ops
from static.trace.symbol import ArraySymbol, Symbol
from tests.peers.torch_table import DEFINITIONS, definitions

OLDER = {"Entry"}  # for Node
OTHERS = {"Size", "double", "half", "linalg", "long", "short"}  # Python's, NumPy's and a module, under PyTorch's names


def misnamed(space: object, names: set[str]) -> dict[str, str]:
    called = {name: getattr(getattr(space, name), "__name__", name) for name in names if hasattr(space, name)}
    return {name: other for name, other in called.items() if other != name}


def test_a_function_is_called_as_it_is_found():
    assert dynamic.lgamma.__name__ == "lgamma"
    assert misnamed(dynamic, set(dynamic.__all__) - OLDER - OTHERS) == {}
    assert misnamed(functional, set(functional.__all__)) == {}


def test_a_method_is_called_as_it_is_found():
    methods = {name for name in dir(dynamic.Tensor) if not name.startswith("_") and hasattr(dynamic.Tensor, name)}
    assert misnamed(dynamic.Tensor, methods) == {"ndimension": "dim"}


@pytest.fixture
def doubled():
    """A name that is there while a test runs, of a function that is entered as any."""

    @names.name("twice", in_place=True)
    def doubled(input, times=1, *, keepdim=False):
        """Twice as much."""
        return input * 2**times

    yield doubled
    for name in ("doubled", "twice"):
        del names.functions[name]
        delattr(names.Methods, name)
        delattr(names.Methods, f"{name}_")


def test_a_definition_is_a_function_a_method_and_a_change_in_place_under_each_of_its_names(doubled):
    assert doubled(3) == 6  # the library calls the function itself
    x = dynamic.tensor([1.0, 2.0])
    for name in ("doubled", "twice"):
        function = names.functions[name]
        assert getattr(x, name)(times=2).tolist() == function(x, 2).tolist() == [4, 8]
        assert (function.__name__, inspect.signature(function)) == (name, inspect.signature(doubled))
        assert function.__doc__ == "Twice as much."
        y = x.clone()
        assert getattr(y, f"{name}_")() is y
        assert y.tolist() == [2, 4]
        assert getattr(dynamic.Tensor, f"{name}_").__doc__ == "In place: Twice as much."
        with pytest.raises(ArgumentError, match=rf"^{name}: .*; call {name}\(input, times=1, \*, keepdim=False\)"):
            function(x, 1, 2)
        with pytest.raises(ArgumentError, match=f"^{name}: got an unexpected keyword argument 'axis', f32"):
            function(x, axis=1)
    assert names.functions["twice"](x=x, keepdims=True).tolist() == [2, 4]  # by NumPy's words
    out = dynamic.zeros(2)
    assert names.functions["twice"](x, out=out) is out
    assert out.tolist() == [2, 4]


def test_a_name_is_defined_once_and_by_a_word_that_is_there():
    def exp(input):
        return input

    for enter in (names.name(), names.name("clip"), names.method()):
        with pytest.raises(ValueError, match=r"PyTorch's name '(exp|clip)' is defined already"):
            enter(exp)
    assert names.functions["exp"] is not exp
    for op, takes in ((g.exp, "flots"), (g.exp, "promoted"), (g.add, "numbers"), (g.where, "any")):
        with pytest.raises(
            ValueError, match=rf"^{op.name}: an op of {op.arity} operands takes one of .*, not '{takes}'"
        ):
            of_op(op, takes)


def test_a_tensor_and_a_symbol_have_each_definition():
    for kind in (dynamic.Tensor, Symbol, ArraySymbol):
        assert {name for name in vars(names.Methods) if not hasattr(kind, name)} == set()
    inputs = {name for name, f in names.functions.items() if [*inspect.signature(f).parameters][:1] == ["input"]}
    assert {name for name in inputs if name not in vars(names.Methods)} == set()
    assert len(inputs) > 250


def test_an_op_that_is_a_function_of_pytorchs_is_found_by_it():
    for op in registered_ops().values():
        for name in () if op.torch is None else (op.torch.name or op.name, *op.torch.alias.split()):
            function = names.functions[name]
            assert function.__doc__ == op.__doc__
            assert len(inspect.signature(function).parameters) == op.arity
            assert hasattr(TorchMethods, f"{name}_") == op.torch.in_place


def test_the_page_of_names_has_each_definition():
    page = (Path(__file__).parents[2] / "docs" / "torch-names.md").read_text("utf-8")
    made = page.partition(f"{DEFINITIONS}\n")[2].partition("\n## ")[0]
    assert made.partition("\n| ")[2].strip() == definitions().removeprefix("| "), (
        "run: python -m tests.peers.torch_table"
    )


@pytest.mark.parametrize("name", ["sum", "exp", "clip", "max"])
def test_a_function_is_pickled_by_its_name(name):
    function = names.functions[name]
    assert pickle.loads(pickle.dumps(function)) is function


def test_ufuncs_are_found_by_the_kernels_of_ops():
    x = dynamic.tensor([0.25, 0.5])
    for name in ("absolute", "arccos", "power", "rint", "sqrt"):
        ufunc = getattr(np, name)
        args = (x, x)[: ufunc.nin]
        np.testing.assert_allclose(ufunc(*args).numpy(), ufunc(*[a.numpy() for a in args]), rtol=1e-6)
