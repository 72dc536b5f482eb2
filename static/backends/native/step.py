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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from static.backends.native import flow
from static.backends.native.flow import Work
from static.backends.native.target import NativeError

DATA, FLAGS = 16, 64  # where an array object has the address of its data, and its flags
EMPTY = 184  # the number of PyArray_Empty in NumPy's table of functions
UNLOCKED = 1 << 20  # operations: a segment of more lets other threads run meanwhile


class Made(NamedTuple):
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
    made: Sequence[Made],
    address: Callable[[Any], int],
    entry: int,
    drivers: Mapping[str, int],
    keeps: Any,
) -> Callable[..., Any]:
    """A function of so many arrays that does the work, and gives a tuple of results, or True if it makes none.

    Places are the number of an argument or result and how many bytes from its start, or -1 and an address.
    It gives False, and does nothing, where an argument is not in row-major order, or not aligned.
    """
    functions = _functions()
    context = np.array([0, 0, *functions.signals], np.int64)
    listed = flow.CallTable(work, address, drivers, context)
    shapes = [np.array(one.shape or (0,), np.intp) for one in made]
    specs = [n for one, s in zip(made, shapes, strict=True) for n in (len(one.shape), s.ctypes.data, id(one.dtype), 0)]
    patches = listed.patches
    is_long = flow.has_loop(work) or flow.operations(work) > UNLOCKED
    numbers = (arguments, len(made), listed.kept(specs), len(patches) // 3, listed.kept(patches))
    calls = (listed.count, listed.calls, int(is_long))
    table = np.array([*numbers, *calls, *functions.entry, context.ctypes.data], np.int64).view(_Table)
    table.keeps = (listed.keeps, shapes, [one.dtype for one in made], keeps)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(ctypes.addressof(_definition(entry)), table, None)
    return function


@functools.cache
def _definition(entry: int) -> _Definition:
    return _Definition(b"step", entry, FASTCALL, None)


class _Functions(NamedTuple):
    """Addresses of objects and functions of Python and NumPy: those of the table, and those of the context."""

    entry: tuple[int, ...]
    signals: tuple[int, ...]


@functools.cache
def _functions() -> _Functions:
    """What machine code needs of Python and NumPy, in the order in which it reads them."""
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
    signals = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release")
    return _Functions((id(True), id(False), *found), tuple(_address(getattr(ctypes.pythonapi, n)) for n in signals))


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


def interpreted(work: Work, made: Sequence[Made], kernels: Mapping[Any, Any], keeps: Any) -> Any:
    """What `make` gives, with kernels of loop IR that plain Python runs."""
    from static.backends.native import reference

    def run(*arrays: np.ndarray[Any, Any]) -> Any:
        if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            return False
        results = tuple(np.empty(one.shape, one.dtype) for one in made)
        reference.follow(work, kernels, [array.ctypes.data for array in (*arrays, *results)])
        return results or True

    run.keeps = keeps  # type: ignore[attr-defined]
    return run
