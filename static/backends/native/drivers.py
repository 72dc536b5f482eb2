"""The machine code that runs loops and branches, as LLVM IR: `flow` says what they do, and `layouts` what they read.

A loop looks every so many operations whether Ctrl-C was pressed, by Python's own PyErr_CheckSignals. Then it stops, and
so does every loop of this call that comes after; the step ends with the exception.
"""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

from static.backends.native.assembler import BYTE, INT, LONG, POINTER, FunctionWriter, number
from static.backends.native.flow import DECIDING, LISTS, SWITCH, WHILE
from static.backends.native.layouts import KERNEL, BranchHeader, CallList, KernelCall, LoopHeader, StepContext

LOOK = 1 << 24  # operations between two looks: some milliseconds
VOID = ir.VoidType()


def module() -> str:
    """The LLVM IR of both."""
    module = ir.Module("drivers")
    run, look = run_calls(module).function, _look(module)
    _loop(module, run, look)
    _branches(module, run)
    return str(module)


def run_calls(module: Any) -> FunctionWriter:
    """The function that makes the calls of a list, one after the other."""
    f = FunctionWriter(module, "run_calls", VOID, [POINTER])
    (calls,) = f.arguments
    first = f.field(calls, CallList, "first")

    def turn(i: Any) -> None:
        call = f.item(first, KernelCall, i)
        f.call(call, KernelCall, "function", f.field(call, KernelCall, "row"), kind=KERNEL)

    f.each(f.field(calls, CallList, "count"), turn)
    f.b.ret_void()
    return f


def _look(module: Any) -> Any:
    """The function that asks Python, when it is time, whether to stop."""
    f = FunctionWriter(module, "look", VOID, [POINTER, LONG])
    context, operations = f.arguments
    since = f.b.add(f.field(context, StepContext, "since"), operations)
    f.set_field(context, StepContext, "since", since)
    with f.where(">", since, number(LOOK)):
        f.set_field(context, StepContext, "since", number(0))
        state = f.call(context, StepContext, "ensure")
        raised = f.call(context, StepContext, "check")
        f.call(context, StepContext, "release", state)
        with f.where("!=", raised, number(0, INT)):
            f.set_field(context, StepContext, "stopped", number(1))
    f.b.ret_void()
    return f.function


def _loop(module: Any, run: Any, look: Any) -> None:
    """Two turns alternate, each with its truth and its lists: the condition, the body, and what follows the loop."""
    f = FunctionWriter(module, WHILE, VOID, [POINTER], is_internal=False)
    (header,) = f.arguments
    context, truths, operations, lists = (f.field(header, LoopHeader, name) for name, _ in LoopHeader._fields_)
    before, turn = f.b.block, f.b.append_basic_block("turn")
    f.b.branch(turn)
    f.b.position_at_end(turn)
    which = f.b.phi(LONG)
    which.add_incoming(number(0), before)
    with f.where("!=", f.field(context, StepContext, "stopped"), number(0)):
        f.b.ret_void()
    condition, body, after = (f.b.add(f.b.mul(which, number(len(LISTS))), number(i)) for i in range(len(LISTS)))
    f.b.call(run, [f.item(lists, CallList, condition)])
    truth = f.b.load(f.b.load(f.item(truths, ctypes.c_void_p, which), typ=POINTER), typ=BYTE)
    with f.where("==", truth, number(0, BYTE)):
        f.b.call(run, [f.item(lists, CallList, after)])
        f.b.ret_void()
    f.b.call(run, [f.item(lists, CallList, body)])
    f.b.call(look, [context, operations])
    which.add_incoming(f.b.sub(number(1), which), f.b.block)
    f.b.branch(turn)


def _branches(module: Any, run: Any) -> None:
    """The list of the number that chooses: the first where it is below 0, the last where it is too large."""
    f = FunctionWriter(module, SWITCH, VOID, [POINTER], is_internal=False)
    (header,) = f.arguments
    at = f.b.load(f.field(header, BranchHeader, "number"), typ=POINTER)
    chosen = f.b.alloca(LONG)
    for dtype, kind in enumerate(DECIDING):
        with f.where("==", f.field(header, BranchHeader, "dtype"), number(dtype)):
            f.b.store(_whole(f, at, kind), chosen)
    index, last = f.b.load(chosen, typ=LONG), f.b.sub(f.field(header, BranchHeader, "count"), number(1))
    index = f.b.select(f.b.icmp_signed("<", index, number(0)), number(0), index)
    index = f.b.select(f.b.icmp_signed(">", index, last), last, index)
    f.b.call(run, [f.item(f.field(header, BranchHeader, "lists"), CallList, index)])
    f.b.ret_void()


def _whole(f: FunctionWriter, at: Any, dtype: str) -> Any:
    """The number of this dtype at an address, as int64."""
    loaded = f.b.load(at, align=1, typ=ir.IntType(8 * int(dtype[1:])))
    if dtype == "b1":
        return f.b.zext(f.b.icmp_unsigned("!=", loaded, number(0, BYTE)), LONG)
    return loaded if dtype == "i8" else f.b.sext(loaded, LONG)
