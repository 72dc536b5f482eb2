"""Memory of arrays between pages that nobody may touch: machine code that leaves an array ends the process.

NumPy asks the allocator in `guards.c` for the data of every array (NEP 49). It is compiled when it is asked for.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char, c_char_p, c_uint8, c_void_p, py_object
from pathlib import Path
from typing import Any

from static.native import layouts

SET_HANDLER = 304  # PyDataMem_SetHandler in NumPy's table of functions


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", c_char * 127),
        ("version", c_uint8),
        ("context", c_void_p),
        ("malloc", c_void_p),
        ("calloc", c_void_p),
        ("realloc", c_void_p),
        ("free", c_void_p),
    )


@functools.cache
def _library() -> Any:
    folder = Path(tempfile.mkdtemp())
    source = Path(__file__).with_name("guards.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(folder / "guards.so")], check=True)
    return ctypes.CDLL(str(folder / "guards.so"))


@functools.cache
def _handler() -> _Handler:
    """What NumPy calls: kept for ever, since an array may outlive the block in which it was made."""
    names = ("malloc", "calloc", "realloc", "free")
    functions = [ctypes.cast(getattr(_library(), f"guards_{name}"), c_void_p) for name in names]
    return _Handler(b"guards", 1, None, *functions)


@contextmanager
def guarded(*, before: bool = False) -> Iterator[None]:
    """Arrays made in here end where a page ends that nobody may touch, or begin `before` which there is one."""
    _library().guards_begin(int(before))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
    exchange = ctypes.PYFUNCTYPE(py_object, py_object)(layouts._numpy_function(SET_HANDLER))
    name = c_char_p(b"mem_handler")  # a capsule keeps the address of its name
    _names.append(name)
    earlier = exchange(make(ctypes.addressof(_handler()), name, None))
    try:
        yield
    finally:
        exchange(earlier)


_names: list[c_char_p] = []
