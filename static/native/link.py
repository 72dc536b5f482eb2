"""From LLVM IR to addresses: one just-in-time compiler per process, and a table of the kernels that are in use.

A kernel is released when nothing that runs it is left. LLVM's memory of a library is released with its last kernel.

Kernels that are compiled together are cut into modules, one for each core: most of a compilation is LLVM's generation
of code.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import itertools
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from static.native import emit, flow
from static.native import target as machines
from static.native.target import Target, lock

SHARED = 64  # libraries of one just-in-time compiler, which keeps some KiB of each as long as it is there
LEAST = 50_000  # characters of a module's IR, about 20 ms of code generation: below that a thread gains little


_gone: list[tuple[Any, Any]] = []  # compilers and libraries that nothing runs any more


def _unload(gone: list[tuple[Any, Any]]) -> None:
    """Release libraries, each before its compiler; the caller holds the lock."""
    while gone:
        jit, loaded = gone.pop()
        del loaded
        del jit


class _Library:
    """A library that LLVM has linked, and its compiler; the library is unloaded before the compiler is released."""

    def __init__(self, jit: Any, loaded: Any) -> None:
        self._jit, self._loaded = jit, loaded

    def __getitem__(self, name: str) -> int:
        address: int = self._loaded[name]
        return address

    def __del__(self, gone: Any = _gone, lock: Any = lock, unload: Any = _unload) -> None:
        # A finalizer may run anywhere, so that waiting for the lock could wait for ever; and late, when a module has no
        # names.
        parts = vars(self)
        gone.append((parts.pop("_jit"), parts.pop("_loaded")))
        if lock.acquire(blocking=False):
            try:
                unload(gone)
            finally:
                lock.release()


class MachineCode:
    """Machine code at an address; this object keeps the library alive that the code is in."""

    __slots__ = ("__weakref__", "address", "library")

    def __init__(self, address: int, library: Any) -> None:
        self.address, self.library = address, library


_in_use: weakref.WeakValueDictionary[Any, MachineCode] = weakref.WeakValueDictionary()  # by recipe and target
_number = itertools.count()


def kernels(recipes: Iterable[Any], target: Target) -> Mapping[Any, MachineCode]:
    """Return the machine code of each recipe's kernel; new kernels are compiled together, or come from the cache."""
    with lock:
        _unload(_gone)
        wanted = dict.fromkeys(recipes)
        linked = {recipe: code for recipe in wanted if (code := _in_use.get((recipe, target))) is not None}
        new = [recipe for recipe in wanted if recipe not in linked]
        if new:
            names = {recipe: f"k{number}" for number, recipe in enumerate(new)}
            write = functools.partial(modules, names, target)
            made = _link(target, machines.kernel_key(new, target), write, list(names.values()))
            linked |= {recipe: made[name] for recipe, name in names.items()}
            _in_use.update({(recipe, target): linked[recipe] for recipe in new})
        return linked


def module(names: Mapping[Any, str], target: Target) -> str:
    """Return the LLVM IR of these recipes' kernels for a target."""
    return _join([_function(recipe, name, target) for recipe, name in names.items()])


def modules(names: Mapping[Any, str], target: Target) -> list[str]:
    """Return the LLVM IR of these recipes' kernels in modules of about the same length: at most one for each core."""
    functions = [_function(recipe, name, target) for recipe, name in names.items()]
    length = sum(len(text) for text, _ in functions)
    count = max(1, min(machines.cores(), len(functions), length // LEAST))
    parts = [list[tuple[str, set[str]]]() for _ in range(count)]
    lengths = [0] * count
    for function in sorted(functions, key=lambda each: len(each[0]), reverse=True):
        shortest = lengths.index(min(lengths))
        parts[shortest].append(function)
        lengths[shortest] += len(function[0])
    return list(map(_join, parts))


def _function(recipe: Any, name: str, target: Target) -> tuple[str, set[str]]:
    """Return the LLVM IR of a recipe's kernel, and the declarations that it needs."""
    declared: set[str] = set()
    return emit.emit(name, recipe.lower(target), declared, target), declared


def _join(functions: Sequence[tuple[str, set[str]]]) -> str:
    declared = sorted(set().union(*(needed for _, needed in functions)))
    return "\n".join([*(text for text, _ in functions), *declared])


@functools.cache
def entry(target: Target) -> MachineCode:
    """Return the machine code of the function that Python calls."""
    return _fixed_functions("entry", target, ["entry"])["entry"]


@functools.cache
def drivers(target: Target) -> Mapping[str, MachineCode]:
    """Return the functions that run loops, branches and shared lists, and one to measure with."""
    return _fixed_functions("drivers", target, [flow.WHILE, flow.SWITCH, flow.PARALLEL, flow.ATTEND, flow.COUNT])


def _fixed_functions(name: str, target: Target, functions: list[str]) -> dict[str, MachineCode]:
    """Return the functions of a module of this package, which is imported only to compile it."""

    def write() -> list[str]:
        return [importlib.import_module(f"static.native.{name}").module()]

    with lock:
        return _link(target, machines.kernel_key([name], target), write, functions)


def _link(target: Target, key: str, write: Callable[[], list[str]], names: Iterable[str]) -> dict[str, MachineCode]:
    kept = machines.load_code(key)
    if kept is None:
        objects = compile_modules(target, write())
        machines.save_code(key, b"".join(map(_with_length, objects)))
    else:
        objects = list(_objects(kept))
    return _load_code(target, objects, names)


def _with_length(code: bytes) -> bytes:
    return struct.pack("<Q", len(code)) + code


def _objects(kept: bytes) -> Iterator[bytes]:
    """Yield the object codes that were kept one after the other, each behind its length."""
    while kept:
        (length,) = struct.unpack_from("<Q", kept)
        yield kept[8 : 8 + length]
        kept = kept[8 + length :]


def _load_code(target: Target, objects: Iterable[bytes], names: Iterable[str]) -> dict[str, MachineCode]:
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder()
    for code in objects:
        builder.add_object_img(code)
    for name in names:
        builder.export_symbol(name)
    number = next(_number)
    jit = _jit(target, number // SHARED)
    library = _Library(jit, builder.link(jit, f"l{number}"))
    return {name: MachineCode(library[name], library) for name in names}


def compile_modules(target: Target, texts: Sequence[str]) -> list[bytes]:
    """Return the object code of each LLVM module, which contains no addresses; several have a thread each."""
    compile_one = functools.partial(_compile_module, target)
    if len(texts) > 1:
        # Where the system gives no thread, or the process ends, this thread compiles; it also raises a module's error.
        with contextlib.suppress(RuntimeError), ThreadPoolExecutor(len(texts)) as threads:
            return list(threads.map(compile_one, texts))
    return list(map(compile_one, texts))


def _compile_module(target: Target, text: str) -> bytes:
    """Return the object code of a module, in a context of its own.

    llvmlite locks each of its calls. LLVM needs no lock for modules of different contexts, so the long call goes to the
    function behind the lock. llvmlite has no public name for that: where the private one is gone, the lock is taken.
    """
    import llvmlite.binding as llvm
    from llvmlite.binding import ffi

    context = llvm.create_context()
    parsed, generator = llvm.parse_assembly(text, context), machine(target)
    locked = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    with ffi.OutputString() as error:
        buffer = getattr(locked, "_cfn", locked)(generator, parsed, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def assembly(text: str, target: Target) -> str:
    """Return the module as instructions of a target, which may be another machine than this."""
    import llvmlite.binding as llvm

    with lock:
        return str(machine(target).emit_assembly(llvm.parse_assembly(text)))


def machine(target: Target) -> Any:
    """Return LLVM's code generator for this target."""
    import llvmlite.binding as llvm

    if target.triple:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        system = llvm.Target.from_triple(target.triple)
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        system = llvm.Target.from_default_triple()
    return system.create_target_machine(cpu=target.cpu, features=target.features, opt=2, jit=True)


@functools.lru_cache(maxsize=1)
def _jit(target: Target, turn: int) -> Any:
    """Return the compiler of this turn; earlier compilers are released with the last of their libraries."""
    del turn
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(machine(target))


PROBE = """
define i64 @probe(ptr %x) {
  %a = load <16 x float>, ptr %x, align 4
  %b = call <16 x float> @llvm.fma.v16f32(<16 x float> %a, <16 x float> %a, <16 x float> %a)
  store <16 x float> %b, ptr %x, align 4
  %i = fptosi <16 x float> %b to <16 x i32>
  %r = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %i)
  %w = sext i32 %r to i64
  ret i64 %w
}
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)
"""


def probe(target: Target) -> None:
    """Run code for this target here.

    Raises AssertionError where its result is wrong; an unknown instruction ends the process.
    """
    place = _load_code(target, compile_modules(target, [PROBE]), ["probe"])["probe"]
    numbers = (ctypes.c_float * 16)(*([2.0] * 16))
    if ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(place.address)(ctypes.addressof(numbers)) != 16 * 6:
        raise AssertionError("2 * 2 + 2 is not 6")
