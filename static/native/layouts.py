"""Where machine code finds what it reads: C structures, whose offsets ctypes knows and whose fields Python writes.

`ArrayObject` is NumPy's and CPython's; the others are our own. `checked` compares the former with arrays that Python
knows before any code that reads it runs.
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
ABI_VERSION = 0x02000000  # what the former says of the table that these numbers are of


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
    """An address of this call: what is so many bytes into an argument or result is written to a slot."""

    _fields_ = (("slot", c_void_p), ("array", c_int64), ("offset", c_int64))


KERNEL = CFUNCTYPE(None, c_void_p)
"""A kernel or driver: a function of the address of what it reads."""


class KernelCall(Structure):
    """A `KERNEL`, and the row of addresses or the header of a loop or branch that it is called with."""

    _fields_ = (("function", c_void_p), ("row", c_void_p))


class CallList(Structure):
    """A list of calls."""

    _fields_ = (("count", c_int64), ("first", c_void_p))


INTERRUPTED = 1
"""What `stopped` holds after Ctrl-C. More is the number of what a kernel refuses (`refusals`)."""


class StepContext(Structure):
    """What all kernels of a step share: whether to stop, the operations since the last look, and how to ask Python.

    What refuses nothing writes to `ignored`, and so needs no branch.
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
    """A loop: where the addresses of its two truths lie, the operations of a turn, and its lists of calls."""

    _fields_ = (("context", c_void_p), ("truths", c_void_p), ("operations", c_int64), ("lists", c_void_p))


class BranchHeader(Structure):
    """Branches: where the address of the number lies that chooses, its dtype, and their lists of calls."""

    _fields_ = (("number", c_void_p), ("dtype", c_int64), ("count", c_int64), ("lists", c_void_p))


class ParallelHeader(Structure):
    """Lists of calls that cores share: the pool, how many there are, and where."""

    _fields_ = (("pool", c_void_p), ("count", c_int64), ("lists", c_void_p))


TICKET_BITS = 16
"""Of a ticket for the first of the lists that nobody has taken, and as many for the one after the last."""
MOST_LISTS = (1 << TICKET_BITS) - 1


class PoolState(Structure):
    """What the threads of a pool share.

    `ticket` is the number of the job, 32 bits, and which of its lists nobody has taken; `left` is how many are not
    done. `busy` while a step has the pool, `sleepers` how many threads wait for the condition. The rest is
    POSIX's: the functions, and room for a mutex and a condition on any system.
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
    """All that the code of a step reads: its arguments and results, the patches, the calls, and what they need.

    `expected` says what the arguments have to be, or nothing where Python has looked. `refuse` is a function of
    Python's, which raises the error of what a kernel has refused.
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
    """The type of each field of a structure, by its name."""
    return dict(layout._fields_)


@functools.cache
def python() -> PythonApi:
    """The addresses in this process. Raises NativeError where Python or NumPy are not as the layouts say."""
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
    """The context of one step, in which nothing has run."""
    api, kind = ctypes.pythonapi, kinds(StepContext)
    functions = {"ensure": api.PyGILState_Ensure, "check": api.PyErr_CheckSignals, "release": api.PyGILState_Release}
    return StepContext(
        ignored=0, stopped=0, since=0, **{name: ctypes.cast(f, kind[name]) for name, f in functions.items()}
    )


def pool_state() -> PoolState:
    """The state of a pool without threads. Raises AttributeError where there are no POSIX threads."""
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
    """Forget what a pool was doing."""
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
    """Look whether arrays lie in memory as `ArrayObject` says. Raises NativeError where they do not."""
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
    """The fields of an array's object that do not hold what NumPy says of the array."""
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
