"""Batches of a data set: how its examples become tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dynamic.tensor import Tensor
from dynamic.utils.data.dataset import IterableDataset
from dynamic.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from graphs import ops
from graphs.errors import GraphError, located


def default_collate(batch: Sequence[Any]) -> Any:
    """Examples as one: tensors, arrays and numbers stacked, containers entry by entry, strings as a list."""
    first = batch[0]
    if issubclass(type(first), (Tensor, np.ndarray, np.generic)):
        return ops.stack([x if issubclass(type(x), Tensor) else Tensor(np.asarray(x)) for x in batch])
    if isinstance(first, bool | int):
        return Tensor(np.array(batch))
    if isinstance(first, float):
        return Tensor(np.array(batch, np.float64))
    if isinstance(first, Mapping):
        return {key: default_collate([example[key] for example in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, (tuple, list)):
        return [default_collate(column) for column in zip(*batch, strict=True)]
    return list(batch)


_ABOUT_WORKERS = ("in_order", "persistent_workers", "pin_memory_device", "prefetch_factor")  # of which there are none


class DataLoader:
    """Batches of a data set, made in this process: `num_workers` is taken, and the batches are the same.

    Raises ValueError for options that exclude each other, and GraphError for several workers over an IterableDataset,
    where PyTorch gives the whole of it to each.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        **more: Any,
    ) -> None:
        if num_workers < 0:
            raise ValueError(f"num_workers is {num_workers}; give 0 or more")
        unknown = [name for name in more if name not in _ABOUT_WORKERS]
        if unknown:
            raise TypeError(f"DataLoader has no option {', '.join(unknown)}")
        if sampler is not None and shuffle:
            raise ValueError("sampler and shuffle exclude each other")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.pin_memory, self.generator = num_workers, pin_memory, generator
        self._is_iterable = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
        if self._is_iterable and num_workers > 1:
            raise GraphError(
                located(f"DataLoader: num_workers={num_workers} would give an IterableDataset to each; leave it out")
            )
        if sampler is None and not self._is_iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler: Iterable[Any] = dataset if self._is_iterable else sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (_single if batch_sampler is None else default_collate)

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is None:
            return (self.collate_fn(self._example(index)) for index in self.sampler)
        return (self.collate_fn([self._example(index) for index in batch]) for batch in self.batch_sampler)

    def _example(self, index: Any) -> Any:
        return index if self._is_iterable else self.dataset[index]

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]


def _single(example: Any) -> Any:
    """An example that is no batch: its arrays and numbers as tensors, its containers as they are."""
    if isinstance(example, np.ndarray | np.generic):
        return Tensor(np.asarray(example))
    return type(example)(map(_single, example)) if type(example) in (tuple, list) else example
