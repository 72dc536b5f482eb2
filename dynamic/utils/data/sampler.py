"""Orders in which the examples of a data set are taken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynamic.nn import draws


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
            return iter(draws.integers(count, wanted, self.generator).tolist())
        rounds = [draws.permutation(count, self.generator) for _ in range(math.ceil(wanted / count))] if count else []
        return iter(np.concatenate(rounds)[:wanted].tolist() if rounds else [])

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
