"""Data sets, the orders in which their examples are taken, and batches of them, in this process, with PyTorch's names.

PyTorch's files, as in `from torch.utils.data.dataset import Dataset`, are not there: each is a module in `sys.modules`.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from dynamic.nn import draws
from dynamic.paths import file_of
from dynamic.random import Generator, multinomial
from dynamic.tensor import Tensor, wrap
from graphs import ops
from graphs.errors import GraphError, OptionError, locate

T = TypeVar("T")


class Dataset(Generic[T]):
    """Examples by number: define `__getitem__`, and `__len__`."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("a data set defines __getitem__")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Examples one after another: define `__iter__`."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("an iterable data set defines __iter__")


class TensorDataset(Dataset[Any]):
    """Tensors with one first axis: an example is a tuple of their slices."""

    def __init__(self, *tensors: Any) -> None:
        """Raises ValueError for first axes of several sizes."""
        if len({tensor.shape[0] for tensor in tensors}) > 1:
            raise ValueError(f"tensors of {[tensor.shape[0] for tensor in tensors]} examples; all need the same number")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class ConcatDataset(Dataset[T]):
    """Data sets one after another."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} examples")
        index %= len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[number - 1] if number else 0
        example: T = self.datasets[number][index - before]
        return example


class Subset(Dataset[T]):
    """Some examples of a data set, by their numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        example: T = self.dataset[self.indices[index]]
        return example

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Subsets of these lengths, or shares that add up to 1, mixed. Raises ValueError where they do not add up."""
    count = len(dataset)
    sizes = [int(length) for length in lengths]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9:
        sizes = [math.floor(count * share) for share in lengths]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count:
        raise ValueError(f"lengths {list(lengths)} do not add up to the {count} examples")
    order = draws.permutation(count, generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


# Orders ---------------------------------------------------------------------------------------------------------------


class Sampler:
    """An order of examples: define `__iter__`, and `__len__`."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("a sampler defines __iter__")


class SequentialSampler(Sampler):
    """One after another."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


_PART = 4096  # numbers that are drawn at once: a program may ask for more than memory holds


class RandomSampler(Sampler):
    """Mixed anew in each pass."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        super().__init__(data_source)
        self.replacement, self.generator = replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            parts = (draws.integers(count, min(_PART, wanted - i), self.generator) for i in range(0, wanted, _PART))
            return itertools.chain.from_iterable(part.tolist() for part in parts)
        rounds = range(math.ceil(wanted / count) if count else 0)
        mixed = itertools.chain.from_iterable(draws.permutation(count, self.generator).tolist() for _ in rounds)
        return itertools.islice(mixed, wanted)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """These examples, mixed anew in each pass."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        super().__init__()
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in draws.permutation(len(self.indices), self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Examples by weights, which need not add up to 1. Raises ValueError for no examples, or none to draw."""

    def __init__(
        self, weights: Sequence[float], num_samples: Any, replacement: bool = True, generator: Any = None
    ) -> None:
        super().__init__()
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"num_samples is an int above 0, not {num_samples!r}")
        self.weights = wrap(np.array(weights, np.float64))
        if self.weights.ndim != 1:
            raise ValueError(f"weights are a sequence of numbers, not of shape {self.weights.shape}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler):
    """The share of one of several processes in a data set, as its number `rank` says; `set_epoch` mixes anew.

    Raises GraphError unless both numbers are given, since there is one process, and ValueError for another rank.
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dataset)
        if num_replicas is None or rank is None:
            raise OptionError(locate("DistributedSampler: there is one process; give num_replicas and rank"))
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank is from 0 to {num_replicas - 1}, not {rank}")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        generator = Generator().manual_seed(self.seed + self.epoch)
        order = draws.permutation(count, generator).tolist() if self.shuffle else list(range(count))
        repeated = itertools.islice(itertools.cycle(order), self.total_size)
        return itertools.islice(repeated, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Mix in another order in each epoch."""
        self.epoch = epoch


class BatchSampler(Sampler):
    """The examples of a sampler in batches."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        super().__init__()
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        batch: list[Any] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler) / self.batch_size
        return math.floor(count) if self.drop_last else math.ceil(count)


# Batches --------------------------------------------------------------------------------------------------------------


def default_collate(batch: Sequence[Any]) -> Any:
    """Examples as one: tensors, arrays and numbers stacked, containers entry by entry, strings as a list."""
    first = batch[0]
    if issubclass(type(first), (Tensor, np.ndarray, np.generic)):
        return ops.stack([x if issubclass(type(x), Tensor) else wrap(np.asarray(x)) for x in batch])
    if isinstance(first, bool | int):
        return wrap(np.array(batch))
    if isinstance(first, float):
        return wrap(np.array(batch, np.float64))
    if isinstance(first, Mapping):
        return {key: default_collate([example[key] for example in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, (tuple, list)):
        return [default_collate(column) for column in zip(*batch, strict=True)]
    return list(batch)


def get_worker_info() -> None:
    """None: this process makes the batches."""


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
                locate(f"DataLoader: num_workers={num_workers} would give an IterableDataset to each; leave it out")
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
        return wrap(np.asarray(example))
    return type(example)(map(_single, example)) if type(example) in (tuple, list) else example


_FILES = {
    "dataloader": (DataLoader, default_collate, get_worker_info),
    "dataset": (ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split),
    "distributed": (DistributedSampler,),
    "sampler": (
        BatchSampler,
        RandomSampler,
        Sampler,
        SequentialSampler,
        SubsetRandomSampler,
        WeightedRandomSampler,
    ),
}
__all__ = sorted(held.__name__ for names in _FILES.values() for held in names)  # noqa: PLE0605
__path__: list[str] = []  # a package: who lets `torch` mean `dynamic` finds its files by their names
globals().update(
    {file: file_of(__name__, file, {held.__name__: held for held in names}) for file, names in _FILES.items()}
)
