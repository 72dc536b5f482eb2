"""`torch.backends`: there is none but the CPU. Switches may be set, and change nothing."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

__all__ = ["cuda", "cudnn", "mps"]

cudnn = SimpleNamespace(deterministic=True, benchmark=False, enabled=False, is_available=lambda: False)
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
cuda = SimpleNamespace(
    matmul=SimpleNamespace(allow_tf32=False), sdp_kernel=lambda **_: nullcontext(), flash_sdp_enabled=lambda: False
)
