"""The machine that code is made for: its name and features in LLVM's words, tested once in a process of its own.

`GRAPHDUEL_NATIVE_TARGET` names one of `TARGETS` to use instead. The binder asks for the target and passes it to all
code that compiles. On a virtual machine the processor may name features that the system has not switched on, and code
that uses them is an illegal instruction. So a child process first compiles and runs a kernel with all features; if it
dies, AVX2 and FMA alone are tried.
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
from static.native import cache

lock = threading.RLock()
"""LLVM is used by one thread at a time, and by none while the process forks: a child would wait for ever for a lock."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

SWITCH = "GRAPHDUEL_NATIVE_TARGET"
PROBE = """
import sys
from static.native import link, target
link.probe(target.Target(*sys.argv[1:]))
"""


class NativeError(GraphError):
    """Native code is not available here; the message says why, and what to do."""


class Target(NamedTuple):
    """A processor, its features and its system, in LLVM's words; without a triple the system is this one."""

    cpu: str
    features: str
    triple: str = ""

    @property
    def _has_avx512(self) -> bool:
        return "+avx512f" in self.features.split(",")

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return 32 if self._has_avx512 or self.triple.startswith("aarch64") else 16

    @property
    def width(self) -> int:
        """The bytes of a vector register."""
        if self.triple.startswith("aarch64"):
            return 16
        return 64 if self._has_avx512 else 32

    @property
    def lanes(self) -> int:
        """The number of float32 in a vector register."""
        return self.width // 4

    @property
    def in_order(self) -> str:
        """The attribute of functions whose instructions stay in about the order in which they are written.

        LLVM's scheduler would finish one vector before it begins the next, although each instruction of a vector waits
        for the last. It keeps vectors side by side for a processor that cannot reorder instructions, like Intel's first
        Atom.
        """
        return "" if self.triple.startswith("aarch64") else '"tune-cpu"="atom"'

    def parts(self, dtype: str, lanes: int) -> int:
        """Return how many registers this many elements take."""
        return max(1, lanes * int(dtype[1:]) // self.width)


AVX2 = Target("x86-64-v3", "+avx,+avx2,+fma")
AVX512 = Target("x86-64-v4", "+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl")
NEON = Target("generic", "+neon", "aarch64-unknown-linux-gnu")
TARGETS = {target.cpu: target for target in (AVX2, AVX512)}
"""The targets that the switch may name; each runs on a machine that has its features."""


@functools.cache
def host() -> Target:
    """Return this machine's target, or the switch's.

    Raises NativeError where llvmlite, AVX2 or FMA is missing, or where code fails.
    """
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NativeError(
            f"backend='native' needs llvmlite ({error}); pip install 'graphduel[native]', or use backend='numpy'"
        ) from None
    with lock:
        name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    if not features.get("fma") or not features.get("avx2"):
        raise NativeError("backend='native' needs a processor with AVX2 and FMA; use backend='numpy'")
    reasons = []
    for target in _candidate_targets(Target(name, features.flatten())):
        reason = _try_target(target)
        if not reason:
            return target
        reasons.append(reason)
    raise NativeError(f"backend='native' cannot run code here: {'; '.join(reasons)}; use backend='numpy'")


def _candidate_targets(whole: Target) -> tuple[Target, ...]:
    """Return the targets to try in order; the first that runs is used."""
    said = os.environ.get(SWITCH, "")
    if not said:
        return whole, AVX2
    if said not in TARGETS:
        raise NativeError(f"{SWITCH} is {said!r}: it names one of {', '.join(TARGETS)}, or nothing")
    return (TARGETS[said],)


def _try_target(target: Target) -> str:
    """Return the reason why code for this target fails in a process of its own, "" if it runs.

    A success is recorded in the kernel cache, for this version of the system.
    """
    name = cache.key(["probe", platform.platform()], target)
    if cache.load(name) is not None:
        return ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *target], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"code for {target.cpu} cannot be tried ({error})"
    if done.returncode == 0:
        cache.save(name, b"runs")
        return ""
    last = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
    return f"code for {target.cpu} fails ({last[0]})"
