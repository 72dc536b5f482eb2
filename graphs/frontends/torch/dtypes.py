"""PyTorch's dtypes: NumPy's dtypes with PyTorch's names and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.errors import DTypeError, locate

__all__ = [
    "bfloat16", "bool", "cdouble", "cfloat", "complex64", "complex128", "double", "dtype", "float", "float16",
    "float32", "float64", "half", "int", "int8", "int16", "int32", "int64", "long", "short", "uint8",
]  # fmt: skip


class dtype:  # noqa: N801  (PyTorch's name)
    """A dtype of tensors: equal to NumPy's, with the same hash, and accepted by NumPy. There is one object each."""

    __slots__ = ("_hash", "dtype", "is_complex", "is_floating_point", "is_signed", "itemsize", "kind", "name", "num")

    dtype: Any
    itemsize: Any
    kind: str
    name: str
    num: Any
    is_floating_point: Any
    is_signed: Any
    is_complex: Any
    _hash: Any

    def __new__(cls, of: Any) -> dtype:  # noqa: PYI034  (nobody derives from it)
        """Return the dtype for any value that NumPy accepts as a dtype."""
        held: np.dtype[Any] = np.dtype(of)
        return by_number.get(held.num) or cls._make(held)

    @classmethod
    def _make(cls, held: np.dtype[Any]) -> dtype:
        made = object.__new__(cls)
        made.dtype, made.kind, made.num = held, held.kind, held.num
        made.itemsize, made.name = held.itemsize, held.name
        made.is_floating_point, made.is_signed = held.kind == "f", held.kind in "fic"
        made.is_complex = held.kind == "c"
        made._hash = hash(held)
        return by_number.setdefault(held.num, made)

    def __eq__(self, other: object) -> Any:
        return other is self or (other is not None and self.dtype == other)

    def __hash__(self) -> Any:
        return self._hash

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dtype, name)  # what NumPy's has besides

    def __reduce__(self) -> Any:
        return dtype, (self.name,)


class absent_dtype(dtype):  # noqa: N801
    """A dtype of PyTorch's that no tensor here has: programs compare with it, and whoever asks for it is refused."""

    __slots__ = ("_remedy",)

    _remedy: str

    def __new__(cls, name: str, remedy: str) -> absent_dtype:  # noqa: PYI034  (nobody derives from it)
        """Make it of its name, of 16 bits, and of what to use instead."""
        made = object.__new__(cls)
        made.name, made.kind, made.num, made._hash, made._remedy = name, "V", None, hash(name), remedy
        made.itemsize, made.is_floating_point, made.is_signed, made.is_complex = 2, True, True, False
        return made

    @property
    def dtype(self) -> Any:  # where NumPy looks for its own
        """Raise DTypeError with the remedy."""
        raise DTypeError(locate(f"tensors are not {self.name} here; {self._remedy}"))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self!r} has no attribute {name!r}")

    def __eq__(self, other: object) -> Any:
        return other is self

    __hash__ = dtype.__hash__

    def __reduce__(self) -> Any:
        return self.name


by_number: dict[Any, dtype] = {}
"""Each by the number of NumPy's, which is found sooner than NumPy's itself."""

bool = dtype(np.bool_)
float16 = half = dtype(np.float16)
float32 = float = dtype(np.float32)
float64 = double = dtype(np.float64)
int8 = dtype(np.int8)
int16 = short = dtype(np.int16)
int32 = int = dtype(np.int32)
int64 = long = dtype(np.int64)
uint8 = dtype(np.uint8)
bfloat16 = absent_dtype("bfloat16", "NumPy has none; use float32, which is more exact, or float16, which is as small")
complex64 = cfloat = dtype(np.complex64)  # of a pair of tensors alone
complex128 = cdouble = dtype(np.complex128)
