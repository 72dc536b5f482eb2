"""The machine that code is made for: its name and features as LLVM knows them, tried once in a process of its own.

On a virtual machine the processor may name features that the system has not switched on, and code for them is an
illegal instruction. So a child process first compiles and runs a kernel with all of them; if it dies, AVX2 and FMA
alone are tried.
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
import threading
from typing import NamedTuple

from graphs.errors import GraphError
from static.backends.native import cache

lock = threading.RLock()
"""LLVM is used by one thread at a time, and by none while the process forks: a child would wait for ever for a lock."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

SAFE = "+avx,+avx2,+fma"
PROBE = """
import sys
from static.backends.native import link, target
link.probe(target.Target(*sys.argv[1:3]))
"""


class NativeError(GraphError):
    """There can be no native code here: the message says why, and what to do."""


class Target(NamedTuple):
    """A processor and its features, in LLVM's words."""

    cpu: str
    features: str

    @property
    def registers(self) -> int:
        """How many vectors of 16 float32 the registers hold, counted as `products` does."""
        return 32 if "+avx512f" in self.features.split(",") else 16


@functools.cache
def host() -> Target:
    """This machine. Raises NativeError where llvmlite is missing, the machine has no FMA, or code must not be run."""
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NativeError(
            f"backend='native' needs llvmlite ({error}); pip install 'graphduel[native]', or use backend='numpy'"
        ) from None
    with lock:
        name, found = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    if not found.get("fma") or not found.get("avx2"):
        raise NativeError("backend='native' needs a processor with AVX2 and FMA; use backend='numpy'")
    whole = Target(name, found.flatten())
    reasons = []
    for one in (whole, Target("x86-64-v3", SAFE)):
        reason = _tried(one)
        if not reason:
            return one
        reasons.append(reason)
    raise NativeError(f"backend='native' cannot run code here: {'; '.join(reasons)}; use backend='numpy'")


def _tried(one: Target) -> str:
    """What goes wrong when code for this target runs in a process of its own; nothing if it runs.

    Where it has run, that is kept with the kernels, for this version of the system.
    """
    name = cache.key(["probe", platform.platform()], one)
    if cache.load(name) is not None:
        return ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *one], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"code for {one.cpu} cannot be tried ({error})"
    if done.returncode == 0:
        cache.save(name, b"runs")
        return ""
    last = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
    return f"code for {one.cpu} fails ({last[0]})"
