"""PyTorch's stateful layers over the op library: `import dynamic.nn as nn`. docs/torch.md lists them."""

# ruff: noqa: F403
from dynamic.nn import (
    containers,
    convolution,
    functional,
    init,
    linear,
    normalization,
    recurrent,
    simple,
    transformer,
    utils,
)
from dynamic.nn.containers import *
from dynamic.nn.convolution import *
from dynamic.nn.linear import *
from dynamic.nn.module import Module
from dynamic.nn.normalization import *
from dynamic.nn.parameter import Buffer, Parameter, functional_call
from dynamic.nn.recurrent import *
from dynamic.nn.simple import *
from dynamic.nn.transformer import *
from dynamic.paths import submodule

__all__ = [  # noqa: PLE0604  (lists of names)
    "Buffer", "Module", "Parameter", "functional", "functional_call", "init", "utils",
    *containers.__all__, *convolution.__all__, *linear.__all__, *normalization.__all__, *recurrent.__all__,
    *simple.__all__, *transformer.__all__,
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "modules":  # PyTorch's import paths, which few programs need
        import importlib

        return importlib.import_module("dynamic.nn.modules")
    if name.startswith("Lazy"):
        raise AttributeError(f"nn has no {name!r}: layers are made with their sizes; use {name[4:]}, and give them")
    return submodule(__name__, name)
