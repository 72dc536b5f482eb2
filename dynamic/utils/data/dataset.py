"""Data sets: things with examples by number."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from dynamic.nn import draws

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
