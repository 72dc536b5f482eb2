"""Modules for files of PyTorch that do not exist here: each is made in `sys.modules` with PyTorch's names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def file_of(package: str, file: str, names: Mapping[str, Any], public: list[str] | None = None) -> ModuleType:
    """Make the module of one of PyTorch's files, and enter it in `sys.modules`; `public` is its `__all__`."""
    folder = package.partition(".")[2].replace(".", "/")
    module = ModuleType(f"{package}.{file}", f"What PyTorch has in {folder}/{file}.py.")
    vars(module).update(names, __all__=list(names) if public is None else public)
    sys.modules[module.__name__] = module
    return module
