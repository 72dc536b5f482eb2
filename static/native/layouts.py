"""C structures that machine code reads: ctypes knows their offsets, and Python writes their fields.

`ArrayObject` is NumPy's and CPython's layout; the other structures are our own. `check_layout` compares the former with
real arrays before any code that reads it runs.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from ctypes import CFUNCTYPE, Structure, c_int, c_int64, c_ssize_t, c_void_p
from typing import Any

import numpy as np

from static.native.target import NativeError

ROW_MAJOR, ALIGNED = 0x0001, 0x0100  # NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED, among the flags of an array
ABI, EMPTY = 0, 184  # PyArray_GetNDArrayCVersion and PyArray_Empty: their numbers in NumPy's table of functions
ABI_VERSION = 0x02000000  # the ABI version of the table that these numbers belong to


class ArrayObject(Structure):
    """The head of an array object: CPython's PyObject, then the fields of NumPy's PyArrayObject."""

    _fields_ = (
        ("references", c_ssize_t),
        ("type", c_void_p),
        ("data", c_void_p),
        ("axes", c_int),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("base", c_void_p),
        ("dtype", c_void_p),
        ("flags", c_int),
    )


class ArraySpec(Structure):
    """An array that a step makes or expects: its number of axes, its shape, and its dtype object."""

    _fields_ = (("axes", c_int), ("shape", c_void_p), ("dtype", c_void_p))


class Patch(Structure):
    """An address that changes with each call: that of an argument or result plus an offset, written to a slot."""

    _fields_ = (("slot", c_void_p), ("array", c_int64), ("offset", c_int64))


KERNEL = CFUNCTYPE(None, c_void_p)
"""The type of a kernel or driver: a function of the address of its row or header."""


class KernelCall(Structure):
    """A `KERNEL`, and the row of addresses, or the header of a loop or branch, that it is called with."""

    _fields_ = (("function", c_void_p), ("row", c_void_p))


class CallList(Structure):
    """A list of calls."""

    _fields_ = (("count", c_int64), ("first", c_void_p))


INTERRUPTED = 1
"""The value of `stopped` after Ctrl-C. Greater values are numbers of errors that kernels raise (`Refusals`)."""


class StepContext(Structure):
    """State that all kernels of a step share: whether to stop, operations since the last check, and Python's functions.

    A kernel writes to `ignored` where nothing is wrong, and so needs no branch.
    """

    _fields_ = (
        ("ignored", c_int64),
        ("stopped", c_int64),
        ("since", c_int64),
        ("ensure", CFUNCTYPE(c_int)),
        ("check", CFUNCTYPE(c_int)),
        ("release", CFUNCTYPE(None, c_int)),
    )


class LoopHeader(Structure):
    """A loop: the place of the addresses of its two truths, the operations of a turn, and its lists of calls."""

    _fields_ = (("context", c_void_p), ("truths", c_void_p), ("operations", c_int64), ("lists", c_void_p))


class BranchHeader(Structure):
    """Branches: the place of the address of the number that chooses, its dtype, and the lists of calls."""

    _fields_ = (("number", c_void_p), ("dtype", c_int64), ("count", c_int64), ("lists", c_void_p))


class ParallelHeader(Structure):
    """Lists of calls that cores share: the pool, how many lists there are, and their address."""

    _fields_ = (("pool", c_void_p), ("count", c_int64), ("lists", c_void_p))


TICKET_BITS = 16
"""The bits of a ticket for the first list that nobody has taken, and as many for the one after the last."""
MOST_LISTS = (1 << TICKET_BITS) - 1


class PoolState(Structure):
    """State that the threads of a pool share.

    `ticket` holds the number of the job (32 bits) and which of its lists nobody has taken; `left` counts lists that are
    not done. `busy` is set while a step has the pool, and `sleepers` counts threads that wait for the condition. The
    rest is POSIX's: functions, and room for a mutex and a condition on any system.
    """

    _fields_ = (
        ("ticket", c_int64),
        ("left", c_int64),
        ("lists", c_void_p),
        ("busy", c_int64),
        ("stop", c_int64),
        ("workers", c_int64),
        ("sleepers", c_int64),
        ("acquire", CFUNCTYPE(c_int, c_void_p)),
        ("release", CFUNCTYPE(c_int, c_void_p)),
        ("wait", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("wake", CFUNCTYPE(c_int, c_void_p)),
        ("rest", CFUNCTYPE(c_int)),
        ("mutex", c_int64 * 16),
        ("condition", c_int64 * 16),
    )


class PythonApi(Structure):
    """Objects and functions of Python and NumPy that a step needs."""

    _fields_ = (
        ("array", c_void_p),
        ("true", c_void_p),
        ("false", c_void_p),
        ("incref", CFUNCTYPE(None, c_void_p)),
        ("decref", CFUNCTYPE(None, c_void_p)),
        ("new_tuple", CFUNCTYPE(c_void_p, c_ssize_t)),
        ("set_item", CFUNCTYPE(c_int, c_void_p, c_ssize_t, c_void_p)),
        ("empty", CFUNCTYPE(c_void_p, c_int, c_void_p, c_void_p, c_int)),
        ("save_thread", CFUNCTYPE(c_void_p)),
        ("restore_thread", CFUNCTYPE(None, c_void_p)),
        ("call", CFUNCTYPE(c_void_p, c_void_p)),
    )


class StepTable(Structure):
    """All data that the code of a step reads: arguments and results, patches, calls, and pointers to the rest.

    `expected` describes the required arguments, or is null where Python has checked them. `refuse` is a Python function
    that raises the error of a kernel that has stopped.
    """

    _fields_ = (
        ("arguments", c_int64),
        ("expected", c_void_p),
        ("result_count", c_int64),
        ("results", c_void_p),
        ("patch_count", c_int64),
        ("patches", c_void_p),
        ("calls", CallList),
        ("is_long", c_int64),
        ("context", c_void_p),
        ("refuse", c_void_p),
        ("python", c_void_p),
    )


def kinds(layout: Any) -> dict[str, Any]:
    """Return the type of each field of a structure, by name."""
    return dict(layout._fields_)


@functools.cache
def python() -> PythonApi:
    """Return addresses of this process's Python and NumPy. Raises NativeError where the layouts do not fit."""
    check_layout()
    api = ctypes.pythonapi
    kind = kinds(PythonApi)
    functions = {
        "incref": api.Py_IncRef,
        "decref": api.Py_DecRef,
        "new_tuple": api.PyTuple_New,
        "set_item": api.PyTuple_SetItem,
        "save_thread": api.PyEval_SaveThread,
        "restore_thread": api.PyEval_RestoreThread,
        "call": api.PyObject_CallNoArgs,
    }
    fields = {name: ctypes.cast(function, kind[name]) for name, function in functions.items()}
    return PythonApi(
        array=id(np.ndarray), true=id(True), false=id(False), empty=kind["empty"](_numpy_function(EMPTY)), **fields
    )


def context() -> StepContext:
    """Return the context of a new step, in which nothing has run."""
    api, kind = ctypes.pythonapi, kinds(StepContext)
    functions = {"ensure": api.PyGILState_Ensure, "check": api.PyErr_CheckSignals, "release": api.PyGILState_Release}
    return StepContext(
        ignored=0, stopped=0, since=0, **{name: ctypes.cast(f, kind[name]) for name, f in functions.items()}
    )


def pool_state() -> PoolState:
    """Return the state of a pool without threads. Raises AttributeError where there are no POSIX threads."""
    system, kind = ctypes.CDLL(None), kinds(PoolState)
    functions = {
        "acquire": system.pthread_mutex_lock,
        "release": system.pthread_mutex_unlock,
        "wait": system.pthread_cond_wait,
        "wake": system.pthread_cond_broadcast,
        "rest": system.sched_yield,
    }
    state = PoolState(**{name: ctypes.cast(f, kind[name]) for name, f in functions.items()})
    clear(state)
    return state


def clear(state: PoolState) -> None:
    """Reset the job of a pool, and its mutex and condition."""
    system, at = ctypes.CDLL(None), ctypes.addressof(state)
    state.ticket = state.left = state.busy = state.sleepers = 0
    system.pthread_mutex_init(c_void_p(at + PoolState.mutex.offset), None)
    system.pthread_cond_init(c_void_p(at + PoolState.condition.offset), None)


def _numpy_function(number: int) -> int:
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(core._ARRAY_API, None)
    return c_void_p.from_address(table + ctypes.sizeof(c_void_p) * number).value or 0


@functools.cache
def check_layout() -> None:
    """Check that arrays lie in memory as `ArrayObject` says. Raises NativeError where they do not."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    if sys.implementation.name != "cpython" or not has_lock or ctypes.sizeof(c_void_p) != 8:
        raise NativeError("backend='native' needs CPython on 64 bits with its interpreter lock; use backend='numpy'")
    bytes_apart = np.zeros(17, np.uint8)[1:].view(np.float64)
    for array in (np.zeros((2, 3)), np.zeros((2, 3)).T, np.zeros(4, np.int32)[::2], bytes_apart):
        wrong = wrong_fields(array)
        if wrong:
            raise NativeError(
                f"backend='native' does not know how NumPy {np.__version__} lays out arrays: {', '.join(wrong)} "
                "lie elsewhere; use backend='numpy'"
            )
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(_numpy_function(ABI))()
    if version != ABI_VERSION:
        raise NativeError(
            f"backend='native' knows the functions of NumPy's ABI {ABI_VERSION:#x}, and this NumPy has {version:#x}; "
            "use backend='numpy'"
        )


def wrong_fields(array: np.ndarray[Any, Any]) -> list[str]:
    """Return the fields of an array's object that differ from what NumPy says of the array."""
    lies = ArrayObject.from_address(id(array))
    flags = array.flags
    truths = {
        "type": lies.type == id(type(array)),
        "data": lies.data == array.ctypes.data,
        "axes": lies.axes == array.ndim,
        "dtype": lies.dtype == id(array.dtype),
        "base": (lies.base or id(None)) == id(array.base),
        "flags": lies.flags == flags.num
        and bool(lies.flags & ROW_MAJOR) == flags.c_contiguous
        and bool(lies.flags & ALIGNED) == flags.aligned,
    }
    if array.ndim and all(truths.values()):  # only now are these addresses
        for name, expected in (("shape", array.shape), ("strides", array.strides)):
            numbers = (c_ssize_t * array.ndim).from_address(getattr(lies, name))
            truths[name] = tuple(numbers) == expected
    return [name for name, holds in truths.items() if not holds]
