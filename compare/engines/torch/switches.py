"""Switches of PyTorch that a measurement turns, or that a function that is measured may turn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compare.engines.switches import Switch
from compare.engines.torch.dynamo import MANY


def switches() -> Sequence[Switch]:
    """Threads, numbers, generators of random numbers, gradients, and how often Dynamo compiles."""
    import torch
    import torch._dynamo
    from torch._dynamo import utils

    pairs = [
        (torch.get_num_threads, torch.set_num_threads),
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_rng_state, torch.set_rng_state),
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
        (lambda: utils._compilation_metrics.maxlen, utils.set_compilation_metrics_limit),
    ]
    if torch.cuda.is_initialized():
        pairs.append((torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
    config = torch._dynamo.config
    pairs += [(partial(getattr, config, name), partial(setattr, config, name)) for name in MANY]
    return [Switch(read, write) for read, write in pairs]
