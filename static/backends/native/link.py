"""From LLVM IR to addresses: one just-in-time compiler a process, and a table of the kernels that it holds."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from static.backends.native import cache, emit, flow
from static.backends.native.drivers import DRIVERS
from static.backends.native.entry import ENTRY
from static.backends.native.target import Target, host

_lock = threading.RLock()
_address: dict[Any, int] = {}  # of each kernel, by its recipe
_kept: list[Any] = []  # what LLVM has linked, which must outlive the addresses


def addresses(recipes: Iterable[Any]) -> Mapping[Any, int]:
    """Where the kernel of each recipe lies; those that are new are compiled together, or come from the cache."""
    with _lock:
        new = [recipe for recipe in dict.fromkeys(recipes) if recipe not in _address]
        if new:
            names = {recipe: f"k{number}" for number, recipe in enumerate(new)}
            found = _linked(host(), cache.key(new, host()), lambda: module(names), list(names.values()))
            _address.update({recipe: found[name] for recipe, name in names.items()})
        return _address


def module(names: Mapping[Any, str]) -> str:
    """The LLVM IR of these recipes' kernels."""
    declared: set[str] = set()
    functions = [emit.emit(name, recipe.lower(), declared) for recipe, name in names.items()]
    return "\n".join([*functions, *sorted(declared)])


@functools.cache
def entry() -> int:
    """The address of the function that Python calls."""
    return _fixed("entry", ENTRY, ["entry"])["entry"]


@functools.cache
def drivers() -> Mapping[str, int]:
    """The addresses of the functions that run loops and branches."""
    return _fixed("drivers", DRIVERS, [flow.WHILE, flow.SWITCH])


def _fixed(name: str, text: str, functions: list[str]) -> dict[str, int]:
    with _lock:
        return _linked(host(), cache.key([name, text], host()), lambda: text, functions)


def _linked(target: Target, key: str, write: Any, names: Iterable[str]) -> dict[str, int]:
    code = cache.load(key)
    if code is None:
        code = compiled(target, write())
        cache.save(key, code)
    return _placed(target, code, names)


def _placed(target: Target, code: bytes, names: Iterable[str]) -> dict[str, int]:
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(code)
    for name in names:
        builder.export_symbol(name)
    library = builder.link(_jit(target), f"l{len(_kept)}")
    _kept.append(library)
    return {name: library[name] for name in names}


def compiled(target: Target, text: str) -> bytes:
    """The object code of a module: no addresses are in it."""
    import llvmlite.binding as llvm

    parsed = llvm.parse_assembly(text)
    code: bytes = machine(target).emit_object(parsed)
    return code


def assembly(text: str) -> str:
    """The module as instructions of this machine."""
    import llvmlite.binding as llvm

    with _lock:
        return str(machine(host()).emit_assembly(llvm.parse_assembly(text)))


def machine(target: Target) -> Any:
    """LLVM's generator of code for this target."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(cpu=target.cpu, features=target.features, opt=2, jit=True)


@functools.cache
def _jit(target: Target) -> Any:
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
    """Run code for this target here. Raises AssertionError where it gives something wrong; may end the process."""
    place = _placed(target, compiled(target, PROBE), ["probe"])["probe"]
    numbers = (ctypes.c_float * 16)(*([2.0] * 16))
    if ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(place)(ctypes.addressof(numbers)) != 16 * 6:
        raise AssertionError("2 * 2 + 2 is not 6")
