"""The machine code that Python calls, as LLVM IR: `binding` describes it, and `layouts` the structures it reads."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

from static.native.drivers import INT, LONG, NULL, POINTER, FunctionWriter, number, run_calls
from static.native.layouts import (
    ALIGNED,
    INTERRUPTED,
    ROW_MAJOR,
    ArrayObject,
    ArraySpec,
    Patch,
    PythonApi,
    StepContext,
    StepTable,
)

NAME = "entry"
ADDRESS, SIZE = ctypes.c_void_p, ctypes.c_ssize_t


def module() -> str:
    """Return the LLVM IR of the entry, a function of Python's fast calling convention whose `self` is the table."""
    module = ir.Module(NAME)
    parts = [_read(module), _make_results(module), _patch_addresses(module), run_calls(module)]
    _entry(module, *(part.function for part in parts))
    return str(module)


def _entry(module: Any, read: Any, make: Any, patch: Any, run: Any) -> None:
    f = FunctionWriter(module, NAME, POINTER, [POINTER, POINTER, LONG], is_internal=False)
    owner, arguments, _ = f.arguments
    table = f.field(owner, ArrayObject, "data")
    python, context = f.field(table, StepTable, "python"), f.field(table, StepTable, "context")
    count = f.b.add(f.field(table, StepTable, "arguments"), f.field(table, StepTable, "result_count"))
    data = f.b.alloca(POINTER, count)
    with f.where("==", f.b.call(read, [table, arguments, data]), number(0)):
        no = f.field(python, PythonApi, "false")
        f.call(python, PythonApi, "incref", no)
        f.b.ret(no)
    result = f.b.call(make, [table, data])
    with f.where("==", result, NULL):
        f.b.ret(NULL)
    f.b.call(patch, [table, data])
    calls = f.at(table, StepTable, "calls")
    with f.b.if_else(f.b.icmp_signed("!=", f.field(table, StepTable, "is_long"), number(0))) as (long, short):
        with long:  # other threads run meanwhile
            thread = f.call(python, PythonApi, "save_thread")
            f.b.call(run, [calls])
            f.call(python, PythonApi, "restore_thread", thread)
        with short:
            f.b.call(run, [calls])
    stopped = f.field(context, StepContext, "stopped")
    with f.where("!=", stopped, number(0)):
        f.call(python, PythonApi, "decref", result)
        with f.where("==", stopped, number(INTERRUPTED)):
            f.set_field(context, StepContext, "stopped", number(0))
            f.b.ret(NULL)
        f.b.ret(f.call(python, PythonApi, "call", f.field(table, StepTable, "refuse")))
    f.b.ret(result)


def _read(module: Any) -> FunctionWriter:
    """Write the function that notes the data address of each argument, and returns 0 if one does not fit.

    An argument does not fit that is not expected, not in row-major order, or not aligned.
    """
    fits = _fits(module).function
    f = FunctionWriter(module, "read", LONG, [POINTER, POINTER, POINTER])
    table, arguments, data = f.arguments
    expected, python = f.field(table, StepTable, "expected"), f.field(table, StepTable, "python")

    def turn(i: Any) -> None:
        array = f.b.load(f.item(arguments, ADDRESS, i), typ=POINTER)
        with f.where("!=", expected, NULL):
            is_right = f.b.call(fits, [python, array, f.item(expected, ArraySpec, i)])
            with f.where("==", is_right, number(0)):
                f.b.ret(number(0))
        needed = number(ROW_MAJOR | ALIGNED, INT)
        with f.where("!=", f.b.and_(f.field(array, ArrayObject, "flags"), needed), needed):
            f.b.ret(number(0))
        f.b.store(f.field(array, ArrayObject, "data"), f.item(data, ADDRESS, i))

    f.each(f.field(table, StepTable, "arguments"), turn)
    f.b.ret(number(1))
    return f


def _fits(module: Any) -> FunctionWriter:
    """Write the function that tests whether an object is an array of a dtype and a shape.

    It tests the type first, since only arrays have the other fields.
    """
    f = FunctionWriter(module, "fits", LONG, [POINTER, POINTER, POINTER])
    python, array, spec = f.arguments

    def refuse_unless_equal(left: Any, right: Any) -> None:
        with f.where("!=", left, right):
            f.b.ret(number(0))

    refuse_unless_equal(f.field(array, ArrayObject, "type"), f.field(python, PythonApi, "array"))
    refuse_unless_equal(f.field(array, ArrayObject, "dtype"), f.field(spec, ArraySpec, "dtype"))
    axes = f.field(array, ArrayObject, "axes")
    refuse_unless_equal(axes, f.field(spec, ArraySpec, "axes"))
    shapes = f.field(array, ArrayObject, "shape"), f.field(spec, ArraySpec, "shape")

    def turn(axis: Any) -> None:
        refuse_unless_equal(*(f.b.load(f.item(shape, SIZE, axis), typ=LONG) for shape in shapes))

    f.each(f.b.sext(axes, LONG), turn)
    f.b.ret(number(1))
    return f


def _make_results(module: Any) -> FunctionWriter:
    """Write the function that makes the tuple of results, True if there are none, and null after an exception.

    It also notes the data address of each result.
    """
    f = FunctionWriter(module, "make", POINTER, [POINTER, POINTER])
    table, data = f.arguments
    python = f.field(table, StepTable, "python")
    count, specs = f.field(table, StepTable, "result_count"), f.field(table, StepTable, "results")
    with f.where("==", count, number(0)):
        yes = f.field(python, PythonApi, "true")
        f.call(python, PythonApi, "incref", yes)
        f.b.ret(yes)
    results = f.call(python, PythonApi, "new_tuple", count)
    with f.where("==", results, NULL):
        f.b.ret(NULL)
    first = f.item(data, ADDRESS, f.field(table, StepTable, "arguments"))

    def turn(i: Any) -> None:
        spec = f.item(specs, ArraySpec, i)
        axes, shape, dtype = (f.field(spec, ArraySpec, name) for name in ("axes", "shape", "dtype"))
        f.call(python, PythonApi, "incref", dtype)  # PyArray_Empty takes the reference
        array = f.call(python, PythonApi, "empty", axes, shape, dtype, number(0, INT))
        with f.where("==", array, NULL):
            f.call(python, PythonApi, "decref", results)
            f.b.ret(NULL)
        f.call(python, PythonApi, "set_item", results, i, array)
        f.b.store(f.field(array, ArrayObject, "data"), f.item(first, ADDRESS, i))

    f.each(count, turn)
    f.b.ret(results)
    return f


def _patch_addresses(module: Any) -> FunctionWriter:
    """Write the function that puts the addresses of this call into the rows that kernels read."""
    f = FunctionWriter(module, "patch", ir.VoidType(), [POINTER, POINTER])
    table, data = f.arguments
    patches = f.field(table, StepTable, "patches")

    def turn(i: Any) -> None:
        patch = f.item(patches, Patch, i)
        start = f.b.load(f.item(data, ADDRESS, f.field(patch, Patch, "array")), typ=POINTER)
        f.b.store(f.moved(start, f.field(patch, Patch, "offset")), f.field(patch, Patch, "slot"))

    f.each(f.field(table, StepTable, "patch_count"), turn)
    f.b.ret_void()
    return f
