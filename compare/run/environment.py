"""The environment of a measurement: the facts needed to judge a number, and never a path or a host's name.

It also draws the layout of memory, anew for each worker, so that intervals cover its effect.

The size of the environment moves the stack, and the start of the heap moves every array and arena after it: either can
make the same code some percent slower or faster, in every run of a program that starts alike (Mytkowicz et al.,
Producing wrong data without doing anything obviously wrong, ASPLOS 2009). Curtsinger and Berger (Stabilizer, ASPLOS
2013) therefore draw the layout at random, again and again. Here each worker has a layout by the seed of its job: an
environment of another size, two blocks of heap that it keeps, one taken before anything is imported and one after, and
an offset of the static engine's arenas within a page, except where bytes are counted. Large arrays have pages of their
own and begin where these do, as in any program; and code stays where the loader puts it.

The running graphduel is identified by the files of its packages, by its tape, and by a digest of its code, which is
equal on every host with the same code.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from sysconfig import get_paths
from typing import Any

import numpy as np

from compare import text
from compare.errors import InputsError
from compare.records.job import KINDS, Job, seeded_random
from compare.records.record import Bare, Blas, Environment
from compare.run import start
from compare.run.start import LAYOUT
from static import memory

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
PACKAGES = ("graphduel", "numpy", "optree", "networkx", "matplotlib", "psutil", "threadpoolctl")
MALLOC = ("MALLOC_", "GLIBC_TUNABLES")  # a heap that is never trimmed makes fresh arrays several times cheaper
GC_POLICY = "collected between rounds, off inside blocks"
_CPUINFO = Path("/proc/cpuinfo")
_PR_SET_PDEATHSIG = 1
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def cache_folder() -> Path:
    """Return the folder for this user's files that can be made again. Raises OSError where the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "graphduel").expanduser()
    except RuntimeError as error:
        raise OSError(str(error)) from error


def measure(job: Job) -> Bare:
    """Return the record of a job that asks for the environment alone, which every record has.

    Raises InputsError where the job names a mode whose engine does not see the device.
    """
    if job.modes:
        from compare.instruments.timing import start_engine  # which loads engines

        start_engine(job)
    return Bare()


def environment(facts: Mapping[str, Any] = {}) -> Environment:
    """Return the environment of this process; `facts` are those of the process that asks, with the same packages."""
    import psutil

    from dynamic import tapes

    return Environment(
        cpu=cpu_model(),
        cores=psutil.cpu_count(logical=False) or os.cpu_count(),
        logical_cores=os.cpu_count(),
        governor=_first_line(_GOVERNOR),
        memory=int(psutil.virtual_memory().total),
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        numpy=np.__version__,
        blas=blas(),
        **(facts or shared_facts()),
        affinity=affinity(),
        threads={name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        malloc={name: value for name, value in os.environ.items() if name.startswith(MALLOC)},
        hash_seed=os.environ.get("PYTHONHASHSEED"),
        gc=GC_POLICY,
        tape="compiled" if tapes.is_compiled() else "python",
        load=load(),
        power=power(),
        layout=start.layout(),
    )


@cache
def shared_facts() -> dict[str, Any]:
    """Return the facts that this process shares with those that it starts, as they are at the first call."""
    return {"versions": versions(), "commit": commit()}


def pin(lane: int = 0, threads: int = 1, *, all_cores: bool = False) -> None:
    """Pin this process to `threads` cores where the system can, lane 0 to the last ones, and BLAS to as many threads.

    With `all_cores` it keeps its cores.
    """
    from threadpoolctl import threadpool_limits

    if hasattr(os, "sched_setaffinity") and not all_cores:
        cores = sorted(os.sched_getaffinity(0), reverse=True)
        os.sched_setaffinity(0, {cores[(lane * threads + i) % len(cores)] for i in range(threads)})
    threadpool_limits(threads)


AUTO = "auto"
"""The number of threads that a process of the user's would have."""
_ALLOWED = f"write {AUTO}, or how many: 2, or 1,2 for an answer for each"


def usual_threads() -> int:
    """Return the threads that a process has which does not say: as OMP_NUM_THREADS says, or one for each core."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    own = int(asked) if asked.isascii() and asked.isdecimal() else 0
    return own or len(affinity() or ()) or os.cpu_count() or 1


def thread_numbers(asked: int | str | Sequence[int | str]) -> tuple[int, ...]:
    """Return the numbers of threads that are asked for, each once: `2`, `"auto"`, `"1,2"`. Raises InputsError."""
    words = asked.split(",") if isinstance(asked, str) else [asked] if isinstance(asked, int) else asked
    numbers = []
    for word in (str(word).strip() for word in words):
        if word != AUTO and not (word.isascii() and word.isdecimal() and int(word)):
            raise InputsError(f"--threads {word or repr(word)} is not a number of threads; {_ALLOWED}")
        numbers.append(usual_threads() if word == AUTO else int(word))
    if not numbers:
        raise InputsError(f"--threads is empty; {_ALLOWED}")
    return tuple(dict.fromkeys(numbers))


def too_many(threads: int) -> str:
    """Return a sentence where this process has fewer cores than threads; else ""."""
    cores = len(affinity() or ()) or os.cpu_count() or 1
    return f"{threads} threads share {text.count_noun(cores, 'core')}, and wait for one another" * (threads > cores)


def end_with(parent: int) -> None:
    """End this process when its parent ends, where the system can (Linux), so that killed runs leave no process.

    Raises SystemExit when the parent has ended already.
    """
    with suppress(AttributeError, OSError, TypeError):  # no such call, or no such library
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            raise SystemExit("the run that asked for this has ended")


def limit_memory(most: int) -> None:
    """Limit this process to `most` bytes beyond its present memory, where the system can; 0 sets no limit."""
    import psutil

    if most and importlib.util.find_spec("resource"):
        import resource

        total = int(psutil.Process().memory_info().vms) + most
        resource.setrlimit(resource.RLIMIT_AS, (total, resource.getrlimit(resource.RLIMIT_AS)[1]))


def load() -> float | None:
    """Return the mean number of processes that ran or waited in the last minute; None where it is not told."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def power() -> str | None:
    """Return the machine's power source, "mains" or "battery"; None without a battery, or where it is not told."""
    import psutil

    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, NotImplementedError):  # not everywhere
        return None
    if battery is None or battery.power_plugged is None:
        return None
    return "mains" if battery.power_plugged else "battery"


def affinity() -> list[int] | None:
    """Return the cores that this process may run on; None where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def cpu_model() -> str:
    """Return the name of the processor."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def blas() -> Blas:
    """Return NumPy's linear algebra library, and the loaded ones with the number of threads of each."""
    from threadpoolctl import threadpool_info

    config: Any = np.show_config(mode="dicts")
    built = config["Build Dependencies"]["blas"]
    fields = ("internal_api", "version", "num_threads", "threading_layer", "architecture")
    loaded = [{f: pool[f] for f in fields if f in pool} for pool in threadpool_info()]
    return Blas(built["name"], built["version"], loaded)


def versions() -> dict[str, str]:
    """Return the versions of graphduel and of the packages that it measures with, as far as they are installed."""
    return {name: version for name in PACKAGES if (version := _version(name))}


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the git commit of this code, with "+" after it when files were changed; None outside a checkout."""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]  # no tag: always the commit
    try:
        done = subprocess.run(
            command,
            cwd=Path(__file__).resolve().parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return None


PAGE = 4096
"""The bytes by which the environment may grow and arenas may move: after a page the layout repeats."""
MOST_HEAP = 1 << 16
"""The most bytes of each block, less than malloc takes directly from the system."""
_kept: list[object] = []


def layout_variable(job: Job) -> dict[str, str]:
    """Return the variable that a worker for this job starts with: the bytes of the first block, and a filler."""
    random = _job_random(job)
    return {LAYOUT: f"{random.randrange(MOST_HEAP)}:" + "x" * random.randrange(PAGE)}


def shift_memory(job: Job) -> None:
    """Keep another block from now on, and begin arenas at an offset, both drawn for the job; earlier ones are freed."""
    random = _job_random(job, "after")
    _kept[:] = [np.empty(random.randrange(MOST_HEAP), np.uint8)]
    offset = random.randrange(0, PAGE, memory.ALIGNMENT)
    memory.begin_at(0 if job.kind in KINDS and KINDS[job.kind].counts else offset)


def _job_random(job: Job, when: str = "before") -> Random:
    return seeded_random(f"{job.seed}/{job.label}/{when}")


# The identity of the running graphduel --------------------------------------------------------------------------------


TAPE = "dynamic._native"
"""The compiled part of the dynamic engine, which may be missing."""
NO_TAPE = "none: the loops of the tape run in Python"


def package_files() -> dict[str, str]:
    """Return the file from which this process imports each package, and the file of the compiled tape."""
    imported = {name: str(Path(_origin(name)).resolve()) for name in start.PACKAGES}
    built = find_spec(TAPE)
    return {**imported, TAPE: str(Path(built.origin).resolve()) if built and built.origin else NO_TAPE}


def is_users(folder: str) -> bool:
    """Whether a folder on the path is one of the user's, and none of this interpreter's or its packages'."""
    path = Path(folder)
    own = map(Path, get_paths().values())
    return not {"site-packages", "dist-packages"} & {*path.parts} and not any(path.is_relative_to(each) for each in own)


def package_differences(expected: Mapping[str, str]) -> list[str]:
    """Return the packages that this process imports from other files than another process, which says its own."""
    own = package_files()
    return [f"{name} is {own[name]} here and {there} there" for name, there in expected.items() if own[name] != there]


@cache
def code_digest() -> str:
    """Return a digest of the packages' Python files, equal wherever the same graphduel is installed."""
    digest = hashlib.sha256()
    for name in start.PACKAGES:
        folder = Path(_origin(name)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def _origin(name: str) -> str:
    spec = find_spec(name)
    return (spec and spec.origin) or "nowhere"
