"""tracemalloc restricted to NumPy's domain, its peak included.

tracemalloc keeps one peak for all domains, so Python objects would be in it. NumPy reports its buffers to
tracemalloc itself, without allocator hooks. So the hooks that `tracemalloc.start` puts around Python's own
allocators are taken off again, and what is left to count is NumPy's.
"""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

_DOMAINS = (0, 1, 2)  # PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ


class _Allocator(ctypes.Structure):
    """PyMemAllocatorEx: a context and four functions."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


@contextmanager
def numpy_memory() -> Iterator[None]:
    """Inside, `tracemalloc.get_traced_memory` counts the bytes of NumPy buffers allocated inside, no others.

    Raises RuntimeError when tracemalloc is running already.
    """
    if tracemalloc.is_tracing():
        raise RuntimeError("tracemalloc is in use already; stop it first")
    gc.collect()
    plain = _allocators()
    tracemalloc.start()
    try:
        _install(plain)
        tracemalloc.clear_traces()
        yield
    finally:
        tracemalloc.stop()


def _allocators() -> list[_Allocator]:
    allocators = [_Allocator() for _ in _DOMAINS]
    for domain, allocator in zip(_DOMAINS, allocators, strict=True):
        ctypes.pythonapi.PyMem_GetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
    return allocators


def _install(allocators: list[_Allocator]) -> None:
    for domain, allocator in zip(_DOMAINS, allocators, strict=True):
        ctypes.pythonapi.PyMem_SetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
