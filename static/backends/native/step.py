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

from graphs import dispatch
from graphs.errors import ShapeError
from graphs.ir import Node
from graphs.spec import describe
from static.backends.native import flow, layouts
from static.backends.native.flow import Work
from static.backends.native.refusals import Refusals

UNLOCKED = 1 << 20  # operations: a segment of more lets other threads run meanwhile


class StepArray(NamedTuple):
    """A result that the step allocates, or an argument that it expects."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _Table(np.ndarray[Any, Any]):
    """The table of a step and where its code is; it keeps alive what the addresses in it are of."""

    entry: int = 0
    keeps: Any = None


class _Definition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


FASTCALL = 0x80


def make(
    work: Work,
    arguments: int,
    made: Sequence[StepArray],
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
    results, shapes = _listed(made)
    fields = layouts.StepTable(
        arguments=arguments,
        result_count=len(made),
        results=ctypes.addressof(results),
        patch_count=len(listed.patches),
        patches=listed.array(layouts.Patch, listed.patches),
        calls=listed.calls,
        is_long=flow.has_loop(work) or flow.operations(work) > UNLOCKED,
        context=ctypes.addressof(context),
        refuse=id(refuse),
        python=ctypes.addressof(python),
    )
    return _function(fields, entry, (listed.keeps, results, shapes, made, refuse, keeps))


def checking(function: Callable[..., Any], arguments: Sequence[StepArray]) -> Callable[..., Any]:
    """The same step, of any objects: it gives False where they are not arrays of just these dtypes and shapes, too.

    A dtype is the object that an array has, so that an array of an equal one does not fit.
    """
    table: Any = function.__self__  # type: ignore[attr-defined]
    fields = layouts.StepTable.from_buffer_copy(table)
    expected, shapes = _listed(arguments)
    fields.expected = ctypes.addressof(expected)
    return _function(fields, table.entry, (table, expected, shapes, arguments))


def array_maker(node: Node, wanted: StepArray) -> Callable[[Any], np.ndarray[Any, Any]]:
    """What makes of the value of a node the array that native code takes it for.

    It raises ShapeError where the op has given something else than its spec says.
    """

    def as_array(value: Any) -> np.ndarray[Any, Any]:
        array = np.require(value, requirements=("C", "A"))
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            specs = [source.spec for source in node.inputs]
            rule = f"gave {describe(array.shape, array.dtype)}, its spec says {describe(*wanted)}; make them equal"
            raise dispatch.explained(node.op, specs, ShapeError(rule), node.source)
        return array.view(wanted.dtype)  # of this very object

    return as_array


def _listed(arrays: Sequence[StepArray]) -> tuple[Any, Any]:
    """Arrays as machine code reads them, and the shapes, which are to be kept with these."""
    shapes = [np.array(array.shape or (0,), np.intp) for array in arrays]
    specs: list[Any] = [(len(a.shape), shape.ctypes.data, id(a.dtype)) for a, shape in zip(arrays, shapes, strict=True)]
    return (layouts.ArraySpec * len(specs))(*specs), shapes


def _function(fields: layouts.StepTable, entry: int, keeps: Any) -> Callable[..., Any]:
    table = np.frombuffer(memoryview(fields), np.uint8).view(_Table)
    table.entry, table.keeps = entry, keeps
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(ctypes.addressof(_definition(entry)), table, None)
    return function


@functools.cache
def _definition(entry: int) -> _Definition:
    return _Definition(b"step", entry, FASTCALL, None)
