"""The import hook that runs PyTorch programs on our engine: `import torch` gives `dynamic` in this process.

The hook stays for the rest of the process. It serves the modules beside a file too, and no file is written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

FRAMEWORK, OURS = "torch", "dynamic"

_NAMED = (
    (re.compile(r"dynamic has no '(\w+)'"), r"torch.\1 is missing in our engine"),
    (re.compile(r"([\w.]+) has no '(\w+)'; docs/torch"), r"torch.\1.\2 is missing in our engine; docs/torch"),
    (
        re.compile(r"cannot import name '(\w+)' from '(?:dynamic|torch)([\w.]*)'(?: \([^)]*\))?"),
        r"torch\2.\1 is missing in our engine",
    ),
    (
        re.compile(r"'(Tensor|Parameter|Symbol)' object has no attribute '(\w+)'"),
        r"torch.Tensor.\2 is missing in our engine",
    ),
)
"""Patterns of our engine's messages about missing names, and the message for a user of PyTorch's names."""


class Finder:
    """Finds `torch` and its submodules: each is our module that has its names."""

    @staticmethod
    def find_spec(name: str, _: Sequence[str] | None = None, __: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module of PyTorch's by name; None for other modules."""
        return ModuleSpec(name, _Loader(), is_package=True) if name.partition(".")[0] == FRAMEWORK else None


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python makes a plain module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the module by ours, or by one that reports each name as missing: some imports are never used."""
        name = module.__name__
        ours = OURS + name.removeprefix(FRAMEWORK)
        try:
            sys.modules[name] = import_module(ours)
        except ModuleNotFoundError as error:
            if error.name != ours:
                raise
            sys.modules[name] = _Missing(name)


class _Missing(ModuleType):
    """A module of PyTorch that our engine lacks; reading a name in it raises AttributeError."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self.__name__} is missing in our engine", name=name)


def stand_in() -> None:
    """Make `torch` mean our engine in this process. Raises ImportError where PyTorch is loaded already."""
    if Finder in sys.meta_path:
        return
    if FRAMEWORK in sys.modules:
        raise ImportError(f"{FRAMEWORK} is loaded already, so that nothing can stand for it; use a process of its own")
    sys.meta_path.insert(0, Finder)


def as_named(message: str) -> str:
    """Return a message of our engine about a missing name, with PyTorch's name for it."""
    for pattern, said in _NAMED:
        message = pattern.sub(said, message)
    return message
