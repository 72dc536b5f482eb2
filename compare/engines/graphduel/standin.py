"""Programs of PyTorch's over our engine, unchanged: `import torch` gives `dynamic`, in this process and from now on.

The names are bound by an import hook, so that the modules beside a file see them as well, and no file is written.
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
"""How our engine says that it has no such name, and what a user of PyTorch's names is told."""


class Finder:
    """Finds `torch` and all in it: the module of ours that has its names."""

    @staticmethod
    def find_spec(name: str, _: Sequence[str] | None = None, __: ModuleType | None = None) -> ModuleSpec | None:
        """The module of that name, if it is one of PyTorch's."""
        return ModuleSpec(name, _Loader(), is_package=True) if name.partition(".")[0] == FRAMEWORK else None


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        """None: a module of Python's own kind, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Put ours in its place, or one that says of each name that it is missing: some imports are of no use."""
        name = module.__name__
        ours = OURS + name.removeprefix(FRAMEWORK)
        try:
            sys.modules[name] = import_module(ours)
        except ModuleNotFoundError as error:
            if error.name != ours:
                raise
            sys.modules[name] = _Missing(name)


class _Missing(ModuleType):
    """A module of PyTorch's that our engine has not."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self.__name__} is missing in our engine", name=name)


def stand_in() -> None:
    """From now on, `torch` is ours in this process. Raises ImportError where PyTorch is loaded already."""
    if Finder in sys.meta_path:
        return
    if FRAMEWORK in sys.modules:
        raise ImportError(f"{FRAMEWORK} is loaded already, so that nothing can stand for it; use a process of its own")
    sys.meta_path.insert(0, Finder)


def as_named(message: str) -> str:
    """What our engine says of a name that it has not, by the name that PyTorch has for it."""
    for pattern, said in _NAMED:
        message = pattern.sub(said, message)
    return message
