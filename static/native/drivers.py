"""The machine code that runs loops, branches and shared lists, as LLVM IR.

`flow` says what they do, and `layouts` which structures they read. Once in so many operations a loop checks whether
Ctrl-C was pressed, by Python's PyErr_CheckSignals. Then it stops, and so does every later loop of this call; the step
ends with the exception.

The functions are the same for every graph. `FunctionWriter`, at the end, writes LLVM IR: fields of structures by name,
and loops over a count. llvmlite's builder knows the types. This module needs llvmlite, so only modules that compile
import it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from static.native.flow import ATTEND, COUNT, DECIDING, LISTS, PARALLEL, SWITCH, WHILE
from static.native.layouts import (
    INTERRUPTED,
    KERNEL,
    MOST_LISTS,
    TICKET_BITS,
    BranchHeader,
    CallList,
    KernelCall,
    LoopHeader,
    ParallelHeader,
    PoolState,
    StepContext,
    kinds,
)

LOOK = 1 << 24  # operations between two looks: some milliseconds
LOOKS = 1 << 15  # polls of a thread for work before it sleeps: some hundred microseconds
REST = 1 << 6  # looks after which it lets others have the core: that takes as long as all of these
VOID = ir.VoidType()


def module() -> str:
    """Return the LLVM IR of all drivers."""
    module = ir.Module("drivers")
    run, look = run_calls(module).function, _look(module)
    _loop(module, run, look)
    _branches(module, run)
    _parallel(module, run)
    _count(module)
    return str(module)


def run_calls(module: Any) -> FunctionWriter:
    """Write the function that makes the calls of a list, one after the other."""
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
    """Write the function that asks Python, once in `LOOK` operations, whether to stop."""
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
            f.set_field(context, StepContext, "stopped", number(INTERRUPTED))
    f.b.ret_void()
    return f.function


def _loop(module: Any, run: Any, look: Any) -> None:
    """Write the while loop: two turns alternate, each with its truth and its lists (condition, body, after)."""
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
    """Write the switch, which runs the list of its number; the first below 0, the last where it is too large."""
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
    """Return the number of this dtype at an address, as int64."""
    loaded = f.b.load(at, align=1, typ=ir.IntType(8 * int(dtype[1:])))
    if dtype == "b1":
        return f.b.zext(f.b.icmp_unsigned("!=", loaded, number(0, BYTE)), LONG)
    return loaded if dtype == "i8" else f.b.sext(loaded, LONG)


# Cores ---------------------------------------------------------------------------------------------------------------


def _write_job_loop(module: Any, run: Any, name: str, *, from_front: bool) -> Any:
    """Write the function that takes lists of the pool's job from one end and runs them until none is left."""
    f = FunctionWriter(module, name, VOID, [POINTER])
    (pool,) = f.arguments
    ticket_at = f.at(pool, PoolState, "ticket")
    again = f.b.append_basic_block("again")
    f.b.branch(again)
    f.b.position_at_end(again)
    ticket = f.b.load_atomic(ticket_at, "seq_cst", 8, typ=LONG)
    first, end = _untaken(f, ticket)
    with f.where("==", first, end):
        f.b.ret_void()
    after = f.b.add(ticket, number(1 << TICKET_BITS)) if from_front else f.b.sub(ticket, number(1))
    taken = f.b.extract_value(f.b.cmpxchg(ticket_at, ticket, after, "seq_cst", "seq_cst"), 1)
    with f.b.if_then(taken):  # the job cannot end before this is done, so that its lists stay
        lists = f.field(pool, PoolState, "lists")
        f.b.call(run, [f.item(lists, CallList, first if from_front else f.b.sub(end, number(1)))])
        f.b.atomic_rmw("sub", f.at(pool, PoolState, "left"), number(1), "seq_cst")
    f.b.branch(again)
    return f.function


def _untaken(f: FunctionWriter, ticket: Any) -> tuple[Any, Any]:
    """Return the first list that nobody has taken, and the one after the last."""
    return f.b.and_(f.b.lshr(ticket, number(TICKET_BITS)), number(MOST_LISTS)), f.b.and_(ticket, number(MOST_LISTS))


def _parallel(module: Any, run: Any) -> None:
    """Write the driver of parallel lists, shared with a pool; they run in turn where the pool has no free threads.

    The caller takes lists from the front and the other threads from the back. The same part of an array has the same
    place in the lists of each kernel, so it is mostly in the cache of the core that takes it next.
    """
    _attend(module, _write_job_loop(module, run, "shared_from_back", from_front=False))
    shared = _write_job_loop(module, run, "shared_from_front", from_front=True)
    f = FunctionWriter(module, PARALLEL, VOID, [POINTER], is_internal=False)
    (header,) = f.arguments
    pool, count, lists = (f.field(header, ParallelHeader, name) for name, _ in ParallelHeader._fields_)
    workers = f.b.load_atomic(f.at(pool, PoolState, "workers"), "seq_cst", 8, typ=LONG)
    with f.where("==", workers, number(0)):
        _in_turn(f, run, count, lists)
    busy = f.at(pool, PoolState, "busy")
    with f.where("!=", f.b.atomic_rmw("xchg", busy, number(1), "seq_cst"), number(0)):  # another thread has it
        _in_turn(f, run, count, lists)
    f.set_field(pool, PoolState, "lists", lists)
    f.set_field(pool, PoolState, "left", count)
    ticket_at = f.at(pool, PoolState, "ticket")
    job = f.b.add(f.b.lshr(f.b.load_atomic(ticket_at, "seq_cst", 8, typ=LONG), number(2 * TICKET_BITS)), number(1))
    f.b.atomic_rmw("xchg", ticket_at, f.b.or_(f.b.shl(job, number(2 * TICKET_BITS)), count), "seq_cst")
    sleepers = f.b.load_atomic(f.at(pool, PoolState, "sleepers"), "seq_cst", 8, typ=LONG)
    with f.where("!=", sleepers, number(0)):
        mutex = f.at(pool, PoolState, "mutex")
        f.call(pool, PoolState, "acquire", mutex)
        f.call(pool, PoolState, "wake", f.at(pool, PoolState, "condition"))
        f.call(pool, PoolState, "release", mutex)
    f.b.call(shared, [pool])
    before, wait = f.b.block, f.b.append_basic_block("wait")
    f.b.branch(wait)
    f.b.position_at_end(wait)
    looks = f.b.phi(LONG)
    looks.add_incoming(number(0), before)
    left = f.b.load_atomic(f.at(pool, PoolState, "left"), "seq_cst", 8, typ=LONG)
    with f.where("!=", left, number(0)):
        looks.add_incoming(_poll_once(f, pool, looks), f.b.block)
        f.b.branch(wait)
    f.b.atomic_rmw("xchg", busy, number(0), "seq_cst")
    f.b.ret_void()


def _poll_once(f: FunctionWriter, pool: Any, looks: Any) -> Any:
    """Write one more poll of a waiting thread; once in `REST` polls it yields the core."""
    more = f.b.add(looks, number(1))
    with f.where("==", f.b.and_(more, number(REST - 1)), number(0)):
        f.call(pool, PoolState, "rest")
    return more


def _in_turn(f: FunctionWriter, run: Any, count: Any, lists: Any) -> None:
    """Write code that runs the lists one after the other, and returns."""
    f.each(count, lambda i: f.b.call(run, [f.item(lists, CallList, i)]))
    f.b.ret_void()


def _count(module: Any) -> None:
    """Write a function that only takes time, to measure with: a loop of as many turns as the row says."""
    f = FunctionWriter(module, COUNT, VOID, [POINTER], is_internal=False)
    (row,) = f.arguments
    f.each(f.b.load(row, typ=LONG), lambda _: None)
    f.b.ret_void()


def _attend(module: Any, shared: Any) -> None:
    """Write the loop of a pool's thread: take part in jobs, poll for a new one for some time, then sleep."""
    f = FunctionWriter(module, ATTEND, VOID, [POINTER], is_internal=False)
    (pool,) = f.arguments
    before, look, sleep, doze, woken = f.b.block, *map(f.b.append_basic_block, ("look", "sleep", "doze", "woken"))

    def idle() -> Any:
        ticket = f.b.load_atomic(f.at(pool, PoolState, "ticket"), "seq_cst", 8, typ=LONG)
        stop = f.b.load_atomic(f.at(pool, PoolState, "stop"), "seq_cst", 8, typ=LONG)
        is_taken = f.b.icmp_signed("==", *_untaken(f, ticket))
        return f.b.and_(is_taken, f.b.icmp_signed("==", stop, number(0)))

    f.b.branch(look)
    f.b.position_at_end(look)
    looks = f.b.phi(LONG)
    looks.add_incoming(number(0), before)
    with f.b.if_then(idle()):
        more = _poll_once(f, pool, looks)
        looks.add_incoming(more, f.b.block)
        f.b.cbranch(f.b.icmp_signed("<", more, number(LOOKS)), look, sleep)
    f.b.branch(woken)

    f.b.position_at_end(sleep)
    mutex, sleepers = f.at(pool, PoolState, "mutex"), f.at(pool, PoolState, "sleepers")
    f.call(pool, PoolState, "acquire", mutex)
    f.b.atomic_rmw("add", sleepers, number(1), "seq_cst")
    f.b.branch(doze)
    f.b.position_at_end(doze)
    with f.b.if_then(idle()):
        f.call(pool, PoolState, "wait", f.at(pool, PoolState, "condition"), mutex)
        f.b.branch(doze)
    f.b.atomic_rmw("sub", sleepers, number(1), "seq_cst")
    f.call(pool, PoolState, "release", mutex)
    f.b.branch(woken)

    f.b.position_at_end(woken)
    with f.where("!=", f.b.load_atomic(f.at(pool, PoolState, "stop"), "seq_cst", 8, typ=LONG), number(0)):
        f.b.ret_void()
    f.b.call(shared, [pool])
    looks.add_incoming(number(0), f.b.block)
    f.b.branch(look)


BYTE, INT, LONG, POINTER = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType()
NULL = ir.Constant(POINTER, None)
_TYPES = {ctypes.c_int64: LONG, ctypes.c_ssize_t: LONG, ctypes.c_int: INT, ctypes.c_void_p: POINTER}


def number(value: int, type: Any = LONG) -> Any:
    """Return an LLVM constant."""
    return ir.Constant(type, value)


class FunctionWriter:
    """Writes one function, from its first instruction to its last. `b` is llvmlite's builder."""

    def __init__(self, module: Any, name: str, result: Any, arguments: Sequence[Any], is_internal: bool = True) -> None:
        self.function = ir.Function(module, ir.FunctionType(result, arguments), name)
        self.function.linkage = "internal" if is_internal else "external"
        self.arguments = self.function.args
        self.b: Any = ir.IRBuilder(self.function.append_basic_block("start"))

    def at(self, address: Any, layout: type[ctypes.Structure], name: str) -> Any:
        """Return the address of a field of a structure."""
        return self.moved(address, number(getattr(layout, name).offset))

    def moved(self, address: Any, count: Any) -> Any:
        """Return the address `count` bytes further."""
        return self.b.gep(address, [count], source_etype=BYTE)

    def field(self, address: Any, layout: type[ctypes.Structure], name: str) -> Any:
        """Load the number or address in a field."""
        return self.b.load(self.at(address, layout, name), typ=_TYPES.get(kinds(layout)[name], POINTER))

    def set_field(self, address: Any, layout: type[ctypes.Structure], name: str, value: Any) -> None:
        """Store a value in a field."""
        self.b.store(value, self.at(address, layout, name))

    def item(self, first: Any, kind: type[Any], index: Any) -> Any:
        """Return the address of an element of an array of structures or addresses."""
        return self.b.gep(first, [index], source_etype=ir.ArrayType(BYTE, ctypes.sizeof(kind)))

    def call(self, address: Any, layout: type[ctypes.Structure], name: str, *arguments: Any, kind: Any = None) -> Any:
        """Call the function whose address is in a field; `kind` is its type where the field has none."""
        prototype = (kind or kinds(layout)[name])()
        result = _TYPES[prototype.restype] if prototype.restype else ir.VoidType()
        pointer = ir.FunctionType(result, [_TYPES[argument] for argument in prototype.argtypes]).as_pointer()
        return self.b.call(self.b.load(self.at(address, layout, name), typ=pointer), arguments)

    def each(self, count: Any, turn: Callable[[Any], None]) -> None:
        """Write a loop over the numbers below a count, which may be 0."""
        with self.b.if_then(self.b.icmp_unsigned("!=", count, number(0))):
            before, body = self.b.block, self.b.append_basic_block("body")
            self.b.branch(body)
            self.b.position_at_end(body)
            index = self.b.phi(LONG)
            turn(index)
            following = self.b.add(index, number(1))
            index.add_incoming(number(0), before)
            index.add_incoming(following, self.b.block)
            after = self.b.append_basic_block("after")
            self.b.cbranch(self.b.icmp_unsigned("<", following, count), body, after)
            self.b.position_at_end(after)

    @contextmanager
    def where(self, name: str, left: Any, right: Any) -> Iterator[None]:
        """Run the code written in the block where a comparison of integers holds: `==`, `!=`, `<` or `>`."""
        with self.b.if_then(self.b.icmp_signed(name, left, right)):
            yield
