"""Modules for files of PyTorch that do not exist here: each is made in `sys.modules` with PyTorch's names."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ROOT = __name__.partition(".")[0]


def file_of(package: str, file: str, names: Mapping[str, Any], public: list[str] | None = None) -> ModuleType:
    """Make the module of one of PyTorch's files, and enter it in `sys.modules`; `public` is its `__all__`.

    A name that it lacks is looked for among the switches.
    """
    folder = package.partition(".")[2].replace(".", "/")
    module = ModuleType(f"{package}.{file}", f"What PyTorch has in {folder}/{file}.py.")
    later = partial(submodule, module.__name__)
    vars(module).update(names, __all__=list(names) if public is None else public, __getattr__=later)
    sys.modules[module.__name__] = module
    return module


class SwitchFinder:
    """Finds the modules of `dynamic.pytorch.switches` by PyTorch's paths, as `dynamic.cuda.amp`: they have no files."""

    @staticmethod
    def find_spec(name: str, _: Sequence[str] | None = None, __: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of such a module by its name; None for other modules."""
        root, _dot, place = name.partition(".")
        if root != ROOT or not import_module(f"{ROOT}.pytorch.switches").is_place(place):
            return None
        return ModuleSpec(name, _SwitchLoader(), is_package=True)


class _SwitchLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module, whose names are made when they are read."""
        module: ModuleType = import_module(f"{ROOT}.pytorch.switches").SwitchModule(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code."""


def install() -> None:
    """Let Python find the modules: asked last, after all files."""
    if SwitchFinder not in sys.meta_path:
        sys.meta_path.append(SwitchFinder)


def submodule(package: str, name: str) -> Any:
    """A module or a switch of PyTorch's inside a package, by its name. Raises AttributeError where there is none."""
    path, place = f"{package}.{name}", package.partition(".")[2]
    switches = import_module(f"{ROOT}.pytorch.switches")
    if (place, name) in switches.NAMES:
        return switches.make(place, name)
    if SwitchFinder.find_spec(path) is None:
        raise AttributeError(f"{place} has no {name!r}; docs/torch.md lists what is there")
    return import_module(path)
