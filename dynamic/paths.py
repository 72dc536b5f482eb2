"""PyTorch's paths of files that are not here: each is a module in `sys.modules` with the names that it has there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def file_of(package: str, file: str, names: Mapping[str, Any], public: list[str] | None = None) -> ModuleType:
    """The module of one of PyTorch's files, entered where `import` looks; `public` is its `__all__`, else all names."""
    folder = package.partition(".")[2].replace(".", "/")
    module = ModuleType(f"{package}.{file}", f"What PyTorch has in {folder}/{file}.py.")
    vars(module).update(names, __all__=list(names) if public is None else public)
    sys.modules[module.__name__] = module
    return module
