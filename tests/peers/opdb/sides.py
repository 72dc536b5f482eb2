"""One call in one framework: how its arguments are made there, and what it gives in plain data."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dynamic.pytorch import seldom
from graphs.errors import GraphError
from graphs.frontends.torch import dtypes
from tests.peers.opdb.samples import LAYOUTS, Call, retold

_ROOT = Path(__file__).resolve().parents[3]
_OURS = tuple(str(_ROOT / name) for name in ("graphs", "dynamic", "static"))
_SIGNATURE = re.compile(r"\w+\(\) (got |missing |takes )|unsupported operand type|not supported between instances")


class OutsideError(Exception):
    """An argument that has no counterpart: complex numbers, sparse tensors, other devices."""


class Value(NamedTuple):
    """A tensor in plain data."""

    array: Any
    dtype: str
    has_history: bool


class Answer(NamedTuple):
    """What a call gave: its result, its arguments afterwards, whether the result is the first one, and gradients.

    `shared` tells for each tensor of the result which of the arguments lie in the same memory.
    """

    result: Any
    arguments: Any
    is_input: bool
    gradients: tuple[Any, ...]
    shared: tuple[tuple[int, ...], ...]


class Failure(NamedTuple):
    """An error: `missing` is a name that is not there, `refused` an error on purpose, `raw` any other."""

    kind: str
    text: str


class Side:
    """A framework: PyTorch itself, or one with its names."""

    def __init__(self, space: Any) -> None:
        self.space = space
        self._layout = LAYOUTS[0]
        self._alike: dict[Any, Any] = {}  # the tensor of each spec, where they share one

    def run(self, call: Call) -> Answer | Failure:
        """What a call gives. Raises OutsideError where an argument cannot be made."""
        with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                function = call.way.find(self.space)
            except AttributeError as error:
                return Failure("missing", str(error))
            self._layout, self._alike = call.layout, {}
            leaves = [self.made(arg, call.with_gradient) for arg in call.args]
            words = {word: self.made(value, call.with_gradient) for word, value in call.words.items()}
            try:
                return self._answer(call, function, leaves, words)
            except Exception as error:  # noqa: BLE001  (an error of any kind is what is looked for)
                return Failure(kind_of(error), f"{type(error).__name__}: {error}")

    def _answer(self, call: Call, function: Any, leaves: list[Any], words: dict[str, Any]) -> Answer:
        args = leaves
        if call.way.changes_input and self.is_tensor(leaves[0]):
            args = [leaves[0].clone(), *leaves[1:]]  # a leaf that requires a gradient is never changed in place
        result = function(*args, **words)
        shared = self._shared(result, (args, words))
        told = retold(call.process)(self.space)(result)  # what of a result is determined at all, such as no signs
        plain, after = self.plain(told), self.plain((args, words))
        return Answer(plain, after, result is args[0], self._gradients(told, (leaves, words)), shared)

    def _shared(self, result: Any, made: Any) -> tuple[tuple[int, ...], ...]:
        arguments = [self._memory(tensor) for tensor in self.tensors(made)]
        results = [self._memory(tensor) for tensor in self.tensors(result)]
        return tuple(
            [tuple([i for i, part in enumerate(arguments) if np.may_share_memory(out, part)]) for out in results]
        )

    def _memory(self, tensor: Any) -> Any:
        if self.space is torch and (tensor.layout != torch.strided or tensor.dtype not in _HELD):
            return np.empty(0)
        if tensor.dtype in (self.space.complex64, self.space.complex128):
            return np.empty(0)
        return tensor.detach().numpy(force=True)

    def _gradients(self, result: Any, made: Any) -> tuple[Any, ...]:
        """The gradients of a weighted sum of all floats of the result, in every leaf that has one."""
        outputs = [self._parts(out) for out in self.tensors(result) if out.requires_grad]
        leaves = [leaf for leaf in self.tensors(made) if leaf.requires_grad and leaf.is_leaf]
        if not outputs or not leaves:
            return ()
        total = sum((out * self._weights(out)).sum().to(self.space.float64) for out in outputs)
        total.backward()  # type: ignore[union-attr]
        return tuple([None if leaf.grad is None else self.plain(leaf.grad).array for leaf in leaves])

    def _parts(self, out: Any) -> Any:
        is_pair = out.dtype in (self.space.complex64, self.space.complex128)
        if not is_pair:
            return out
        return self.space.view_as_real(out.resolve_conj() if self.space is torch else out)

    def _weights(self, out: Any) -> Any:
        count = int(np.prod(tuple(out.shape), dtype=int))
        weights = np.cos(np.arange(count, dtype=np.float64)) + 0.25
        return self.space.tensor(weights.reshape(tuple(out.shape))).to(out.dtype)

    # ---- there and back -------------------------------------------------------------------------------------------

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of this framework."""
        return isinstance(value, self.space.Tensor)

    def made(self, value: Any, with_gradient: bool = False) -> Any:
        """A value of PyTorch's in this framework, tensors as leaves of their own."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, with_gradient and value.requires_grad)
        if isinstance(value, _WORDS):
            return self._word(value)
        if isinstance(value, dict):
            return {word: self.made(item, with_gradient) for word, item in value.items()}
        if isinstance(value, torch.Size):
            return self.space.Size(value)
        if isinstance(value, (list, tuple)):
            items = [self.made(item, with_gradient) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value

    def _word(self, value: Any) -> Any:
        """A dtype, layout or device in this framework."""
        if self.space is torch:
            return value
        if isinstance(value, torch.device) and value.type == "cpu":
            return self.space.device("cpu")
        name = str(value).removeprefix("torch.")
        if isinstance(value, (torch.device, torch.Generator, complex)) or not hasattr(self.space, name):
            raise OutsideError(name)
        return getattr(self.space, name)

    def _tensor(self, value: torch.Tensor, requires_grad: bool) -> Any:
        if value.layout != torch.strided or value.device.type != "cpu":
            raise OutsideError(f"{value.layout} on {value.device}")
        if value.is_complex() or value.dtype not in _HELD:
            raise OutsideError(str(value.dtype))
        if value.ndim > 64:
            raise OutsideError("more axes than an array has")
        if self._layout != "shared":
            return self._laid(value, requires_grad)
        spec = tuple(value.shape), value.dtype, requires_grad
        if spec not in self._alike:
            self._alike[spec] = self._laid(value, requires_grad)
        return self._alike[spec]

    def _laid(self, value: torch.Tensor, requires_grad: bool) -> Any:
        array = np.array(value.detach().numpy(), order="C")
        if self._layout == "apart" and array.ndim:
            buffer = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            buffer[..., ::2] = array
            array = buffer[..., ::2]
        elif self._layout == "turned" and array.ndim:
            array = np.asfortranarray(array)
        tensor = self.space.from_numpy(array)
        return (tensor.clone() if self._layout in (LAYOUTS[0], "shared") else tensor).requires_grad_(requires_grad)

    def plain(self, value: Any) -> Any:
        """Tensors as arrays, containers as tuples."""
        if self.is_tensor(value):
            if self.space is torch and (value.layout != torch.strided or value.dtype not in (*_HELD, *_PAIRS)):
                return ("a tensor", str(value.dtype), str(value.layout))
            array = (value.resolve_conj() if self.space is torch else value).detach().numpy(force=True)
            return Value(array.copy(), str(value.dtype).removeprefix("torch."), bool(value.requires_grad))
        if isinstance(value, dict):
            return tuple([(word, self.plain(item)) for word, item in sorted(value.items())])
        if isinstance(value, (list, tuple)):
            return tuple(map(self.plain, value))
        if isinstance(value, (*_WORDS, seldom.memory_format, np.dtype, type, dtypes.dtype)):
            return "a dtype, layout or device"
        return value

    def tensors(self, value: Any) -> Iterator[Any]:
        """The tensors in a value."""
        if self.is_tensor(value):
            yield value
        elif isinstance(value, dict):
            for item in value.values():
                yield from self.tensors(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from self.tensors(item)


_WORDS = (torch.dtype, torch.memory_format, torch.layout, torch.device, torch.Generator, complex)
_HELD = (
    torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool,
)  # fmt: skip
_PAIRS = (torch.complex64, torch.complex128)


def kind_of(error: Exception) -> str:
    """`missing`, `refused` or `raw`: an error on purpose is a GraphError, a `raise` in our files, or a signature's."""
    if isinstance(error, GraphError):
        return "refused"
    if isinstance(error, AttributeError) and ("has no attribute" in str(error) or "dynamic has no" in str(error)):
        return "missing"
    if isinstance(error, TypeError) and _SIGNATURE.match(str(error)):
        return "refused"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "raw"
    filename = trace.tb_frame.f_code.co_filename
    is_ours = filename.startswith(_OURS)
    return "refused" if is_ours and linecache.getline(filename, trace.tb_lineno).strip().startswith("raise") else "raw"
