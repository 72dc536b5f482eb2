"""Machines: what must be equal for the numbers of two to be pooled, and a label that tells hosts apart.

Where a framework computes: on the CPU, or on a GPU, whose name goes into the environment of each record.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from typing import Any, Literal, get_args

from compare.records.record import Blas, Environment

Fingerprint = dict[str, Any]


def fingerprint(environment: Environment) -> Fingerprint:
    """What decides how fast the same job is, from the environment of a record; what it lacks is None."""
    blas = environment.blas or Blas()
    cores = sorted({str(pool["architecture"]) for pool in blas.loaded if pool.get("architecture")})
    return {
        **{
            name: getattr(environment, name)
            for name in ("cpu", "machine", "python", "numpy", "commit", "malloc", "tape", "gpu")
        },
        "blas": [blas.name, blas.version, *cores],
    }


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """`numpy 2.0.1 and 2.4.6` for each part of two fingerprints that differs."""
    names = dict.fromkeys([*left, *right])
    return [f"{name} {left.get(name)} and {right.get(name)}" for name in names if left.get(name) != right.get(name)]


def label(host: str | None = None) -> str:
    """A host without its name, which is nobody's business: the same for the same host. This one by default."""
    return "host-" + hashlib.sha256((host or platform.node()).encode()).hexdigest()[:8]


Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)

_gpus: list[str] = []


def note_gpu(gpu: str) -> None:
    """Remember that this process computes on that GPU."""
    _gpus[:] = [gpu]


def gpu_in_use() -> str | None:
    """The GPU that this process computes on; None for the CPU."""
    return _gpus[-1] if _gpus else None
