"""Ways to see the memory of an array."""

import numpy as np

import dynamic

ALIASES = {
    "the array": lambda a: a,
    "slice": lambda a: a[1:],
    "element axis": lambda a: a[None],
    "transpose": lambda a: a.T,
    "reshape": lambda a: a.reshape(-1),
    "reversed": lambda a: a[::-1],
    "view of a view": lambda a: a[1:][::2].T,
    "other dtype": lambda a: a.view(np.uint8),
    "subclass": lambda a: a.view(np.recarray),
    "asarray": np.asarray,
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape)),
    "strided": lambda a: np.lib.stride_tricks.as_strided(a, (3,), a.strides[-1:]),
    "window": lambda a: np.lib.stride_tricks.sliding_window_view(a.reshape(-1), 4),
    "dlpack": np.from_dlpack,
    "memoryview": memoryview,
    "data": lambda a: a[2:].data,
    "buffer": lambda a: np.frombuffer(a, np.uint8),
    "ctypes": lambda a: a.ctypes,
    "flat": lambda a: a.flat,
    "nditer": np.nditer,
    "tensor": dynamic.from_numpy,
    "saved for backward": lambda a: (dynamic.tensor(1.0, requires_grad=True) * dynamic.from_numpy(a)).sum(),
}


def content(alias):
    """The bytes that an alias shows, or that what it stands for does."""
    if isinstance(alias, (memoryview, np.ndarray)):
        return np.asarray(alias).tobytes()
    if isinstance(alias, dynamic.Tensor):
        if alias.requires_grad:
            return alias.grad_fn.next_functions[0][0].saved[0].tobytes()
        return alias.numpy().tobytes()
    if isinstance(alias, np.nditer):
        return alias.operands[0].tobytes()
    return alias._arr.tobytes() if hasattr(alias, "_arr") else np.asarray(alias.base).tobytes()
