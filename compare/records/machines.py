"""Machines: the fingerprint that must be equal for numbers to be pooled, and a label that tells hosts apart.

The last part notes the GPU on which this process computes; its name goes into the environment of each record.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from typing import Any, Literal, get_args

from compare.records.record import Blas, Environment

Fingerprint = dict[str, Any]


def fingerprint(environment: Environment) -> Fingerprint:
    """Return the fields of an environment that decide the speed of a job; a missing field is None."""
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
    """Return each field in which two fingerprints differ, as `numpy 2.0.1 and 2.4.6`."""
    names = dict.fromkeys([*left, *right])
    return [f"{name} {left.get(name)} and {right.get(name)}" for name in names if left.get(name) != right.get(name)]


def label(host: str | None = None) -> str:
    """Return a label that hides a host's name, the same for the same host; by default of this host."""
    return "host-" + hashlib.sha256((host or platform.node()).encode()).hexdigest()[:8]


Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)

_gpus: list[str] = []


def note_gpu(gpu: str) -> None:
    """Remember the name of the GPU on which this process computes."""
    _gpus[:] = [gpu]


def gpu_in_use() -> str | None:
    """Return the name of the GPU on which this process computes; None for the CPU."""
    return _gpus[-1] if _gpus else None
