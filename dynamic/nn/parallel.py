"""PyTorch's classes for several devices. There is one device: a module is called in this process."""

from __future__ import annotations

from typing import Any

from dynamic.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls its module; devices and axes are ignored. State dicts have PyTorch's "module." names."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.dim, self.device_ids = dim, list[Any]()

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The result of the module."""
        return self.module(*inputs, **options)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """The result of the module for the inputs: one, or a tuple of them."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


def __getattr__(name: str) -> object:
    remedy = "use DataParallel, or the module itself" if name == "DistributedDataParallel" else "there is one process"
    raise AttributeError(f"nn.parallel has no {name!r}; {remedy}")
