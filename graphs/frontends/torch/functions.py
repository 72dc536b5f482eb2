"""All of PyTorch's functions that the files of this folder define, by name; `functions.pyi` is generated from them."""

# ruff: noqa: F401, PLE0604  (a file enters its names when it is loaded)
from graphs.frontends.torch import (
    arithmetic,
    complexes,
    joining,
    numbers,
    picking,
    products,
    reductions,
    shapes,
    sorting,
)
from graphs.frontends.torch.names import Methods, functions

globals().update(functions)
__all__ = [*sorted(functions)]
