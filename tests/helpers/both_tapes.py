"""The compiled tape, the tape in Python, and all there is to say about a call of either."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
from dynamic import tapes
from dynamic.tape import bind
from graphs import dispatch, op
from tests.helpers.recorded import described

ROOT = Path(__file__).resolve().parents[2]

if tapes.is_compiled():
    import dynamic._native as loops
    from dynamic import fast
    from dynamic.fast import pullbacks
else:
    fast = loops = pullbacks = None  # and every test that reads them is skipped

compiled_only = pytest.mark.skipif(
    not tapes.is_compiled(),
    reason="the loops of the tape are not compiled here: no C compiler at installation, or GRAPHDUEL_TAPE=python",
)


def in_python(*arguments: str) -> str:
    """What a new process prints that runs the loops in Python."""
    told = {**os.environ, "GRAPHDUEL_TAPE": "python", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Record -----------------------------------------------------------------------------------------------------------

Function = Callable[..., Any]


def is_recorded(one: op.Op) -> bool:
    """Whether the compiled tape records an op itself."""
    return one.arity != 0 and one.family not in ("custom", "control")


def both(one: op.Op, *, swapped: bool = False) -> tuple[Function, Function]:
    """The record of an op, and the tape in Python."""

    def python(*args: Any, **options: Any) -> Any:
        with interpreted(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(one, "shortcuts", {})
            return one(*(args[::-1] if swapped else args), **options)

    return fast.record(one, swapped=swapped), python


def outcome(call: Function, *args: Any, **options: Any) -> Any:
    """All there is to say about a call: what is kept of its result, or its error."""
    try:
        with np.errstate(all="ignore"):
            result = call(*args, **options)
    except Exception as error:  # noqa: BLE001  (whatever it is, it must be the same)
        return type(error), _placeless(str(error))
    if not isinstance(result, dynamic.Tensor):
        array = np.asarray(result)
        return type(result), array.dtype, array.shape, str(array) if array.dtype.hasobject else array.tobytes()
    return *described(result), result.grad, result.requires_grad, result.is_leaf


def _placeless(message: str) -> str:
    """The message without the line that it names."""
    return re.sub(r"\w+\.py:\d+", "", message)


@contextmanager
def interpreted() -> Iterator[None]:
    """Inside, the interpreter for tensors is the one in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatch.interpreters, dynamic.Tensor, bind)
        yield


def twice(one: op.Op, call: Callable[[], Any]) -> Iterator[Any]:
    """What a call gives that the compiled loops make in each of their ways, and what the interpreter says of it."""
    with interpreted(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(one, "shortcuts", {})
        yield outcome(call)
    outcome(call)  # the first use of an op makes its record
    yield outcome(call)  # which learns the options
    yield outcome(call)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one, "shortcuts", {})
        yield outcome(call)
