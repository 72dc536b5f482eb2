"""The machine code that Python calls, as LLVM IR: `step` says what it does, and `layouts` what it reads."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

from static.backends.native.assembler import INT, LONG, NULL, POINTER, Function, number
from static.backends.native.drivers import run_calls
from static.backends.native.layouts import ALIGNED, ROW_MAJOR, ArrayObject, Patch, Python, Result, StepContext, Table

NAME = "entry"
ADDRESS = ctypes.c_void_p


def module() -> str:
    """The LLVM IR of the entry: a function of Python's fast calling convention, whose `self` is an array, the table."""
    module = ir.Module(NAME)
    parts = [_read(module), _made(module), _patched(module), run_calls(module)]
    _entry(module, *(part.function for part in parts))
    return str(module)


def _entry(module: Any, read: Any, make: Any, patch: Any, run: Any) -> None:
    f = Function(module, NAME, POINTER, [POINTER, POINTER, LONG], is_internal=False)
    owner, arguments, _ = f.arguments
    table = f.field(owner, ArrayObject, "data")
    python, context = f.field(table, Table, "python"), f.field(table, Table, "context")
    count = f.b.add(f.field(table, Table, "arguments"), f.field(table, Table, "result_count"))
    data = f.b.alloca(POINTER, count)
    with f.where("==", f.b.call(read, [table, arguments, data]), number(0)):
        no = f.field(python, Python, "false")
        f.call(python, Python, "incref", no)
        f.b.ret(no)
    result = f.b.call(make, [table, data])
    with f.where("==", result, NULL):
        f.b.ret(NULL)
    f.b.call(patch, [table, data])
    calls = f.at(table, Table, "calls")
    with f.b.if_else(f.b.icmp_signed("!=", f.field(table, Table, "is_long"), number(0))) as (long, short):
        with long:  # other threads run meanwhile
            thread = f.call(python, Python, "save_thread")
            f.b.call(run, [calls])
            f.call(python, Python, "restore_thread", thread)
        with short:
            f.b.call(run, [calls])
    with f.where("!=", f.field(context, StepContext, "stopped"), number(0)):
        f.set_field(context, StepContext, "stopped", number(0))
        f.call(python, Python, "decref", result)
        f.b.ret(NULL)
    f.b.ret(result)


def _read(module: Any) -> Function:
    """Notes where the data of arguments lie; 0 if one is not in row-major order, or not aligned."""
    f = Function(module, "read", LONG, [POINTER, POINTER, POINTER])
    table, arguments, data = f.arguments

    def turn(i: Any) -> None:
        array = f.b.load(f.item(arguments, ADDRESS, i), typ=POINTER)
        needed = number(ROW_MAJOR | ALIGNED, INT)
        with f.where("!=", f.b.and_(f.field(array, ArrayObject, "flags"), needed), needed):
            f.b.ret(number(0))
        f.b.store(f.field(array, ArrayObject, "data"), f.item(data, ADDRESS, i))

    f.each(f.field(table, Table, "arguments"), turn)
    f.b.ret(number(1))
    return f


def _made(module: Any) -> Function:
    """Makes the tuple of results, or gives True if there are none; null after an exception. Notes where data lie."""
    f = Function(module, "make", POINTER, [POINTER, POINTER])
    table, data = f.arguments
    python = f.field(table, Table, "python")
    count, specs = f.field(table, Table, "result_count"), f.field(table, Table, "results")
    with f.where("==", count, number(0)):
        yes = f.field(python, Python, "true")
        f.call(python, Python, "incref", yes)
        f.b.ret(yes)
    results = f.call(python, Python, "new_tuple", count)
    with f.where("==", results, NULL):
        f.b.ret(NULL)
    first = f.item(data, ADDRESS, f.field(table, Table, "arguments"))

    def turn(i: Any) -> None:
        spec = f.item(specs, Result, i)
        axes, shape, dtype = (f.field(spec, Result, name) for name in ("axes", "shape", "dtype"))
        f.call(python, Python, "incref", dtype)  # PyArray_Empty takes the reference
        array = f.call(python, Python, "empty", axes, shape, dtype, number(0, INT))
        with f.where("==", array, NULL):
            f.call(python, Python, "decref", results)
            f.b.ret(NULL)
        f.call(python, Python, "set_item", results, i, array)
        f.b.store(f.field(array, ArrayObject, "data"), f.item(first, ADDRESS, i))

    f.each(count, turn)
    f.b.ret(results)
    return f


def _patched(module: Any) -> Function:
    """Writes the addresses of this call into the rows that kernels read."""
    f = Function(module, "patch", ir.VoidType(), [POINTER, POINTER])
    table, data = f.arguments
    patches = f.field(table, Table, "patches")

    def turn(i: Any) -> None:
        patch = f.item(patches, Patch, i)
        start = f.b.load(f.item(data, ADDRESS, f.field(patch, Patch, "array")), typ=POINTER)
        f.b.store(f.moved(start, f.field(patch, Patch, "offset")), f.field(patch, Patch, "slot"))

    f.each(f.field(table, Table, "patch_count"), turn)
    f.b.ret_void()
    return f
