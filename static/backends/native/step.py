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

ENTRY = """
define ptr @entry(ptr %self, ptr %args, i64 %given) {
start:
  %tp = getelementptr i8, ptr %self, i64 16
  %table = load ptr, ptr %tp
  %count = load i64, ptr %table
  %made_p = getelementptr i64, ptr %table, i64 1
  %made = load i64, ptr %made_p
  %all = add i64 %count, %made
  %io = alloca ptr, i64 %all
  %none = icmp eq i64 %count, 0
  br i1 %none, label %allocate, label %read
read:
  %i = phi i64 [ 0, %start ], [ %i1, %fine ]
  %ap = getelementptr ptr, ptr %args, i64 %i
  %a = load ptr, ptr %ap
  %fp = getelementptr i8, ptr %a, i64 64
  %f = load i32, ptr %fp
  %m = and i32 %f, 257
  %whole = icmp eq i32 %m, 257
  br i1 %whole, label %fine, label %refuse
fine:
  %dp = getelementptr i8, ptr %a, i64 16
  %d = load ptr, ptr %dp
  %ip = getelementptr ptr, ptr %io, i64 %i
  store ptr %d, ptr %ip
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %read, label %allocate
refuse:
  %no_p = getelementptr i64, ptr %table, i64 9
  %no = load ptr, ptr %no_p
  %rinc_p = getelementptr i64, ptr %table, i64 10
  %rinc = load ptr, ptr %rinc_p
  call void %rinc(ptr %no)
  ret ptr %no
allocate:
  %inc_p = getelementptr i64, ptr %table, i64 10
  %inc = load ptr, ptr %inc_p
  %tuple_p = getelementptr i64, ptr %table, i64 11
  %new_tuple = load ptr, ptr %tuple_p
  %set_p = getelementptr i64, ptr %table, i64 12
  %set = load ptr, ptr %set_p
  %empty_p = getelementptr i64, ptr %table, i64 13
  %empty = load ptr, ptr %empty_p
  %specs_p = getelementptr i64, ptr %table, i64 2
  %specs = load ptr, ptr %specs_p
  %nothing = icmp eq i64 %made, 0
  br i1 %nothing, label %yes, label %tuple
yes:
  %yes_p = getelementptr i64, ptr %table, i64 8
  %yes_o = load ptr, ptr %yes_p
  call void %inc(ptr %yes_o)
  br label %patches
tuple:
  %t = call ptr %new_tuple(i64 %made)
  %bad_t = icmp eq ptr %t, null
  br i1 %bad_t, label %fail, label %make
make:
  %j = phi i64 [ 0, %tuple ], [ %j1, %made_one ]
  %sp = getelementptr [4 x i64], ptr %specs, i64 %j
  %nd = load i64, ptr %sp
  %nd32 = trunc i64 %nd to i32
  %dims_p = getelementptr i64, ptr %sp, i64 1
  %dims = load ptr, ptr %dims_p
  %dt_p = getelementptr i64, ptr %sp, i64 2
  %dt = load ptr, ptr %dt_p
  call void %inc(ptr %dt)
  %o = call ptr %empty(i32 %nd32, ptr %dims, ptr %dt, i32 0)
  %bad_o = icmp eq ptr %o, null
  br i1 %bad_o, label %drop, label %made_one
made_one:
  %ignored = call i32 %set(ptr %t, i64 %j, ptr %o)
  %odp = getelementptr i8, ptr %o, i64 16
  %od = load ptr, ptr %odp
  %place = add i64 %count, %j
  %op = getelementptr ptr, ptr %io, i64 %place
  store ptr %od, ptr %op
  %j1 = add i64 %j, 1
  %more_made = icmp ult i64 %j1, %made
  br i1 %more_made, label %make, label %patches
drop:
  %dec_p = getelementptr i64, ptr %table, i64 14
  %dec = load ptr, ptr %dec_p
  call void %dec(ptr %t)
  br label %fail
fail:
  ret ptr null
patches:
  %result = phi ptr [ %yes_o, %yes ], [ %t, %made_one ]
  %np_p = getelementptr i64, ptr %table, i64 3
  %np = load i64, ptr %np_p
  %patch_p = getelementptr i64, ptr %table, i64 4
  %patch = load ptr, ptr %patch_p
  %unpatched = icmp eq i64 %np, 0
  br i1 %unpatched, label %unlock, label %write
write:
  %k = phi i64 [ 0, %patches ], [ %k1, %write ]
  %wp = getelementptr [3 x i64], ptr %patch, i64 %k
  %slot = load ptr, ptr %wp
  %which_p = getelementptr i64, ptr %wp, i64 1
  %which = load i64, ptr %which_p
  %off_p = getelementptr i64, ptr %wp, i64 2
  %off = load i64, ptr %off_p
  %src_p = getelementptr ptr, ptr %io, i64 %which
  %src = load ptr, ptr %src_p
  %at = getelementptr i8, ptr %src, i64 %off
  store ptr %at, ptr %slot
  %k1 = add i64 %k, 1
  %more_w = icmp ult i64 %k1, %np
  br i1 %more_w, label %write, label %unlock
unlock:
  %nc_p = getelementptr i64, ptr %table, i64 5
  %nc = load i64, ptr %nc_p
  %calls_p = getelementptr i64, ptr %table, i64 6
  %calls = load ptr, ptr %calls_p
  %long_p = getelementptr i64, ptr %table, i64 7
  %long = load i64, ptr %long_p
  %is_long = icmp ne i64 %long, 0
  br i1 %is_long, label %release, label %begin
release:
  %save_p = getelementptr i64, ptr %table, i64 15
  %save = load ptr, ptr %save_p
  %thread = call ptr %save()
  br label %begin
begin:
  %state = phi ptr [ null, %unlock ], [ %thread, %release ]
  %idle = icmp eq i64 %nc, 0
  br i1 %idle, label %ran, label %run
run:
  %c = phi i64 [ 0, %begin ], [ %c1, %run ]
  %cp = getelementptr [2 x ptr], ptr %calls, i64 %c
  %fn = load ptr, ptr %cp
  %row_p = getelementptr ptr, ptr %cp, i64 1
  %row = load ptr, ptr %row_p
  call void %fn(ptr %row)
  %c1 = add i64 %c, 1
  %more_c = icmp ult i64 %c1, %nc
  br i1 %more_c, label %run, label %ran
ran:
  br i1 %is_long, label %acquire, label %done
acquire:
  %restore_p = getelementptr i64, ptr %table, i64 16
  %restore = load ptr, ptr %restore_p
  call void %restore(ptr %state)
  br label %done
done:
  ret ptr %result
}
"""


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
