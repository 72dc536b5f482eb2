"""A segment of native kernels as one function that Python calls: no kernel knows of Python, and none is called by it.

One piece of machine code serves all segments: `self` of the function is an array of numbers, the table, which says
what to do. For each argument, an array, the address of its data is noted; results are made; patches write the
addresses of what is new in this call into the rows that kernels read; and the kernels run one after the other.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from static.backends.native.target import NativeError

DATA, FLAGS = 16, 64  # where an array object has the address of its data, and its flags
EMPTY = 184  # the number of PyArray_Empty in NumPy's table of functions
UNLOCKED = 1 << 20  # operations: a segment of more lets other threads run meanwhile


class Made(NamedTuple):
    """A result that the step allocates."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Call(NamedTuple):
    """A kernel to be called, and where each of its parameters lies.

    That is the number of an argument or result and how many bytes from its start, or -1 and an address.
    """

    recipe: Any
    places: Sequence[tuple[int, int]]


class _Table(np.ndarray[Any, Any]):
    """The table of a step; it keeps alive what the addresses in it are of."""

    keeps: Any = None


class _Definition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


FASTCALL = 0x80


def make(
    calls: Sequence[Call],
    arguments: int,
    made: Sequence[Made],
    address: Callable[[Any], int],
    entry: int,
    long: bool,
    keeps: Any,
) -> Callable[..., Any]:
    """A function of so many arrays that calls the kernels, and gives a tuple of results, or True if it makes none.

    It gives False, and does nothing, where an argument is not in row-major order, or not aligned.
    """
    row = np.zeros(sum(len(call.places) for call in calls) or 1, np.int64)
    patches, listed, at = [], [], 0
    for call in calls:
        listed += [address(call.recipe), row.ctypes.data + 8 * at]
        for which, offset in call.places:
            if which >= 0:
                patches += [row.ctypes.data + 8 * at, which, offset]
            else:
                row[at] = offset
            at += 1
    shapes = [np.array(one.shape or (0,), np.intp) for one in made]
    specs = [n for one, s in zip(made, shapes, strict=True) for n in (len(one.shape), s.ctypes.data, id(one.dtype), 0)]
    arrays = [np.array(numbers or [0], np.int64) for numbers in (specs, patches, listed)]
    spec_row, patch_row, call_row = (array.ctypes.data for array in arrays)
    functions = _functions()
    table = np.array(
        [
            *(arguments, len(made), spec_row, len(patches) // 3, patch_row, len(calls), call_row, int(long)),
            *functions,
        ],
        np.int64,
    ).view(_Table)
    table.keeps = (row, arrays, shapes, [one.dtype for one in made], keeps)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(ctypes.addressof(_definition(entry)), table, None)
    return function


@functools.cache
def _definition(entry: int) -> _Definition:
    return _Definition(b"step", entry, FASTCALL, None)


@functools.cache
def _functions() -> tuple[int, ...]:
    """The objects and functions that the entry needs of Python and NumPy, in the order of the table."""
    check_layout()
    names = (
        "Py_IncRef",
        "PyTuple_New",
        "PyTuple_SetItem",
        "",
        "Py_DecRef",
        "PyEval_SaveThread",
        "PyEval_RestoreThread",
    )
    found = [_address(getattr(ctypes.pythonapi, name)) if name else _numpy_function(EMPTY) for name in names]
    return (id(True), id(False), *found)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _numpy_function(number: int) -> int:
    core: Any = importlib.import_module("numpy._core._multiarray_umath")

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(core._ARRAY_API, None)
    return ctypes.c_void_p.from_address(table + 8 * number).value or 0


def check_layout() -> None:
    """Look whether arrays have their fields where the entry reads them. Raises NativeError where they do not."""
    known = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
    one = np.zeros((2, 3)).T
    if known and ctypes.sizeof(ctypes.c_void_p) == 8:
        data = ctypes.c_void_p.from_address(id(one) + DATA).value
        flags = ctypes.c_int.from_address(id(one) + FLAGS).value
        if data == one.ctypes.data and flags == one.flags.num:
            return
    raise NativeError("backend='native' needs CPython on 64 bits with its interpreter lock; use backend='numpy'")


def interpreted(calls: Sequence[Call], made: Sequence[Made], kernels: Sequence[Any], keeps: Any) -> Any:
    """What `make` gives, with kernels of loop IR that plain Python runs."""
    from static.backends.native import reference

    def run(*arrays: np.ndarray[Any, Any]) -> Any:
        if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            return False
        results = tuple(np.empty(one.shape, one.dtype) for one in made)
        starts = [array.ctypes.data for array in (*arrays, *results)]
        for call, kernel in zip(calls, kernels, strict=True):
            reference.run(kernel, [offset + (starts[which] if which >= 0 else 0) for which, offset in call.places])
        return results or True

    run.keeps = keeps  # type: ignore[attr-defined]
    return run
