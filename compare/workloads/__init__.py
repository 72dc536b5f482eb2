"""Workloads: plain functions over graphs ops, each with its data and sizes.

A name leads to where the workload is defined, `module:attribute`, so that listing names imports nothing and a fresh
worker process imports only the one it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module

from compare.errors import UnknownNameError
from compare.extensions import load_extensions
from compare.workloads import models
from compare.workloads.base import Case, Workload

__all__ = ["Case", "Workload", "add", "get", "load", "names", "nearest", "source"]

WORKLOADS = (
    "big_matmul",
    "tiny_mlp",
    "deep_chain",
    "elementwise_chain",
    "mlp_digits",
    "conv_digits",
    "rnn_text",
    "lstm_text",
    "encoder_text",
    "tree_lstm",
    "branch_on_sum",
    "early_exit",
    "moe_digits",
    "fixed_point",
    "decode_text",
    "beam_text",
)
"""The files in this folder that each have a `WORKLOAD`, in the order reports use."""
_sources = {name: f"{__name__}.{name}:WORKLOAD" for name in WORKLOADS}


def names() -> tuple[str, ...]:
    """The name of every workload: those of this folder, then what other distributions and `add` have added."""
    _add_extensions()
    return tuple(_sources)


def get(name: str) -> Workload:
    """The workload of that name. Raises UnknownNameError suggesting the nearest name."""
    return load(source(name))


def source(name: str) -> str:
    """Where the workload or the real model of that name is defined, as `module:attribute`."""
    if models.is_model(name):
        return models.source(name)
    if name not in _sources and name not in names():
        raise UnknownNameError(f"no workload is named {name!r}; {nearest(name, names())}")
    return _sources[name]


@cache
def _add_extensions() -> None:
    """Enter the workloads of entry points."""
    for name, extension in load_extensions("workloads", Workload, tuple(_sources)).items():
        add(name, extension.source)


def load(source: str) -> Workload:
    """The workload defined at `module:attribute`. Raises UnknownNameError when something else is there."""
    module, _, attribute = source.partition(":")
    workload = getattr(import_module(module), attribute, None)
    if not isinstance(workload, Workload):
        raise UnknownNameError(f"{source} is no Workload; define it with compare.workloads.Workload")
    return workload


def add(name: str, source: str) -> None:
    """Enter a workload of your own under a name. Raises ValueError when the name is taken."""
    if name in _sources:
        raise ValueError(f"a workload named {name!r} exists already; choose another name")
    _sources[name] = source


MANY = 30
"""The most names that a message lists."""


def nearest(name: str, names: Sequence[str]) -> str:
    """The part of an error message that says which name was probably meant."""
    close = get_close_matches(name, names, n=1, cutoff=0.52)
    listed = f"choose one of {', '.join(names)}" if len(names) <= MANY else f"none of {len(names)} names is like it"
    return f"did you mean {close[0]!r}?" if close else listed
