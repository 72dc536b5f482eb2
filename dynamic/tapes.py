"""The choice of the tape: the compiled one of `dynamic/fast/` where it was built, else the one in Python.

`GRAPHDUEL_TAPE=python` in the environment chooses the one in Python. Both keep the same values and call the same
kernels in the same order, so that they give the same bits. The rest of this package uses the names set here.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynamic import tape
from dynamic import tape as back
from dynamic.tensor import Tensor
from graphs import capture, dispatch


def _native_tape() -> Any:
    """The compiled tape; None where it was not built, or `GRAPHDUEL_TAPE` chooses the other."""
    if os.environ.get("GRAPHDUEL_TAPE") == "python":
        return None
    try:
        from dynamic import fast
    except ImportError:
        return None
    return fast


def _no_step(_f: Callable[..., Any], _args: tuple[Any, ...], _positions: list[int]) -> tuple[Any, ...] | None:
    """Return None: the tape in Python has no compiled step from a function to its gradients."""
    return None


watchers: list[Callable[[Any], None]] = []
"""Called with every array that the compiled tape makes; the one in Python runs all kernels by `dispatch.execute`."""

functions: dict[str, Any] = {}
"""PyTorch's functions that the compiled tape has too, which are called there."""

_fast: Any = _native_tape()
if _fast is None:
    bind, history, walk, step = tape.bind, tape.history, back.walk, _no_step
else:
    bind, history, walk, step = _fast.bind, _fast.history, _fast.walk, _fast.step
    watchers = _fast.watchers
    functions = _fast.functions()
    for _name, _method in (_fast.operators() | functions).items():
        setattr(Tensor, _name, _method)

dispatch.interpret(Tensor, bind)
capture.tensors.append(Tensor)


def is_compiled() -> bool:
    """Whether the compiled tape is in use."""
    return _fast is not None


def remedy() -> str:
    """What to install for the compiled tape; empty where it is in use, or `GRAPHDUEL_TAPE` chooses the other."""
    if is_compiled() or os.environ.get("GRAPHDUEL_TAPE") == "python":
        return ""
    has_headers = Path(sysconfig.get_path("include"), "Python.h").exists()
    needed = "a C compiler" if has_headers else "Python's headers (python3-dev, python3-devel)"
    return f"the compiled tape is missing: install {needed}, and then graphduel again"
