"""The machine that code is made for: its name and features in LLVM's words, tested once in a process of its own.

`GRAPHDUEL_NATIVE_TARGET` names one of `TARGETS` to use instead. The binder asks for the target and passes it to all
code that compiles. On a virtual machine the processor may name features that the system has not switched on, and code
that uses them is an illegal instruction. So a child process first compiles and runs a kernel with all features; if it
dies, AVX2 and FMA alone are tried.

Kernels are kept on disk: object code, named by a hash of its source, in a folder that nobody else can write to. A
cached kernel is code that will run. So it is read only from a folder and a file that belong to this user and that no
other user may write. `GRAPHDUEL_NATIVE_CACHE` names the folder, or says `off`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from graphs.errors import GraphError
from graphs.files import write_file

CACHE_SWITCH = "GRAPHDUEL_NATIVE_CACHE"
MAGIC = b"graphduel native 1\n"


def cache_folder() -> Path | None:
    """Return the folder of cached kernels, None where nothing is cached."""
    said = os.environ.get(CACHE_SWITCH, "")
    if said == "off" or os.name != "posix":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(said or Path(base, "graphduel", "native")).expanduser()
    except RuntimeError:  # neither HOME nor an entry in passwd says where a user is at home: as in a container
        return None


def kernel_key(recipes: Iterable[Any], target: tuple[str, ...]) -> str:
    """Return the key of these kernels on this machine, made by this emitter and this LLVM."""
    parts = [_maker(), *target, *map(repr, recipes)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def _maker() -> str:
    import llvmlite

    digest = hashlib.sha256(llvmlite.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def load_code(name: str) -> bytes | None:
    """Return the object code stored under this key, None where there is none that can be trusted."""
    place = cache_folder()
    if place is None or not _is_private(place):
        return None
    try:
        with (place / name).open("rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            kept = file.read()
    except OSError:
        return None
    digest, code = kept[len(MAGIC) : len(MAGIC) + 32], kept[len(MAGIC) + 32 :]
    is_whole = kept.startswith(MAGIC) and hashlib.sha256(code).digest() == digest
    return code if is_whole else None


def save_code(name: str, code: bytes) -> None:
    """Store object code under a key, whole or not at all; an error of the file system is ignored."""
    place = cache_folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(place):
            return
        write_file(place / name, MAGIC + hashlib.sha256(code).digest() + code, mode=0o600)


def _is_private(place: Path) -> bool:
    """Whether a path is a folder that belongs to this user and that nobody else may write to."""
    try:
        status = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_ours(status)


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


lock = threading.RLock()
"""Who uses LLVM holds this, also for the threads that compile for it, and so does a fork: in a child a lock of LLVM's
that another thread held would stay held for ever."""
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
    name = kernel_key(["probe", platform.platform()], target)
    if load_code(name) is not None:
        return ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *target], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"code for {target.cpu} cannot be tried ({error})"
    if done.returncode == 0:
        save_code(name, b"runs")
        return ""
    last = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
    return f"code for {target.cpu} fails ({last[0]})"
