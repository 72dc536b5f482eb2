"""A segment of native kernels as one function that Python calls: no kernel knows of Python, and none is called by it.

One piece of machine code serves all segments: `self` of the function is an array, the table, which says what to
do. For each argument, an array, the address of its data is noted; results are made; patches write the
addresses of what is new in this call into the rows that kernels read; and the kernels run one after the other.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from static.backends.native import flow, layouts
from static.backends.native.flow import Work
from static.backends.native.refusals import Refusals

UNLOCKED = 1 << 20  # operations: a segment of more lets other threads run meanwhile


class MadeArray(NamedTuple):
    """A result that the step allocates."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _Table(np.ndarray[Any, Any]):
    """The table of a step; it keeps alive what the addresses in it are of."""

    keeps: Any = None


class _Definition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


FASTCALL = 0x80


def make(
    work: Work,
    arguments: int,
    made: Sequence[MadeArray],
    address: Callable[[Any], int],
    entry: int,
    drivers: Mapping[str, int],
    refusals: Refusals,
    keeps: Any,
) -> Callable[..., Any]:
    """A function of so many arrays that does the work, and gives a tuple of results, or True if it makes none.

    Places are the number of an argument or result and how many bytes from its start, or -1 and an address.
    It gives False, and does nothing, where an argument is not in row-major order, or not aligned. It raises what a
    kernel refuses.
    """
    python, context, refuse = layouts.python(), refusals.context, refusals.refuse
    listed = flow.CallTable(work, address, drivers, context)
    shapes = [np.array(result.shape or (0,), np.intp) for result in made]
    specs = [(len(result.shape), s.ctypes.data, id(result.dtype)) for result, s in zip(made, shapes, strict=True)]
    fields = layouts.StepTable(
        arguments=arguments,
        result_count=len(made),
        results=listed.array(layouts.ResultArray, specs),
        patch_count=len(listed.patches),
        patches=listed.array(layouts.Patch, listed.patches),
        calls=listed.calls,
        is_long=flow.has_loop(work) or flow.operations(work) > UNLOCKED,
        context=ctypes.addressof(context),
        refuse=id(refuse),
        python=ctypes.addressof(python),
    )
    table = np.frombuffer(memoryview(fields), np.uint8).view(_Table)
    table.keeps = (listed.keeps, shapes, [result.dtype for result in made], refuse, keeps)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(ctypes.addressof(_definition(entry)), table, None)
    return function


@functools.cache
def _definition(entry: int) -> _Definition:
    return _Definition(b"step", entry, FASTCALL, None)
