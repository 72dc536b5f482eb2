"""Random numbers that Python draws while a function is traced: a trace would make them constants, and refuses them."""

from __future__ import annotations

import _random
import contextlib
import ctypes
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from graphs import capture
from graphs.errors import ControlFlowError, user_line
from graphs.op import is_ours


class Streams:
    """The random generators that a function can draw from in Python, and the state of each before it runs."""

    def __init__(self, f: Callable[..., Any], leaves: Iterable[Any]) -> None:
        self._named = [*_everywhere(), *(("a generator", g.bit_generator) for g in _generators([f, *leaves]))]
        self._before = [_state(stream) for _, stream in self._named]

    def check(self, f: Callable[..., Any]) -> None:
        """Raise ControlFlowError where the state of a generator has changed."""
        for (name, stream), before in zip(self._named, self._before, strict=True):
            if _state(stream) != before:
                raise ControlFlowError(
                    f"{getattr(f, '__name__', 'the function')}: draws from {name} while it is traced ({user_line()}), "
                    "and each call would have the same numbers; draw by torch.rand, torch.randn or graphs.uniform, or "
                    "pass the numbers as an argument"
                )


def _everywhere() -> Iterator[tuple[str, Any]]:
    yield "Python's random", random
    if "numpy.random" in sys.modules:
        yield "np.random", sys.modules["numpy.random"].mtrand._rand._bit_generator
    for generator in capture.generators:
        if "numpy" in vars(generator) and hasattr(generator.numpy, "bit_generator"):  # the generator has been used
            yield "torch's generator outside of torch's functions", generator.numpy.bit_generator


def _state(stream: Any) -> Any:
    if stream is random:  # its `getstate` makes 624 Python numbers, half of a small trace's time
        generator: Any = random.getstate.__self__  # type: ignore[attr-defined]  # whose methods its functions are
        return ctypes.string_at(id(generator) + _HEAD, _TWISTER - _HEAD), generator.gauss_next
    if type(stream).__name__ == "MT19937":  # its `state` makes as many
        return ctypes.string_at(stream.ctypes.state_address, _WORDS * 4)
    return pickle.dumps(stream.state)


_WORDS = 625  # of the Mersenne twister: 624 words of state, and the count of used ones
_HEAD, _TWISTER = object.__basicsize__, _random.Random.__basicsize__  # bytes of an object, and of a twister


def _generators(roots: list[Any]) -> list[Any]:
    """Return NumPy's generators that are reachable from these objects; [] where `numpy.random` is not loaded."""
    if "numpy.random" not in sys.modules:
        return []
    kind, generators, seen, waiting = sys.modules["numpy.random"].Generator, [], set[int](), [*roots]
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, kind):
            generators.append(value)
        elif isinstance(value, FunctionType):
            waiting += _names_in_code(value)
        elif isinstance(value, MethodType):
            waiting += [value.__func__, value.__self__]
        elif not isinstance(value, (type, ModuleType)) and not is_ours(type(value)):
            waiting += getattr(value, "__dict__", {}).values()
    return generators


_MOST = 2000  # values that are looked at


def _names_in_code(f: FunctionType) -> Iterator[Any]:
    """Yield the objects that a function's code reaches by name; for the library's own functions its closure alone."""
    for cell in f.__closure__ or ():
        with contextlib.suppress(ValueError):  # the cell is empty
            yield cell.cell_contents
    yield from f.__defaults__ or ()
    yield from (f.__kwdefaults__ or {}).values()
    if not is_ours(f):
        yield from (f.__globals__[name] for name in f.__code__.co_names if name in f.__globals__)
