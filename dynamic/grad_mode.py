"""The mode of each thread: whether ops on tensors are recorded, and whether they are deferred to a batch."""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, NamedTuple
from weakref import ref

from graphs import capture, dispatch
from graphs.blocks import Block, Table, innermost


class Mode(NamedTuple):
    """How ops run in a thread. Compiled loops read it, too: `mode_now` in `loops/module.c`.

    recording   whether ops on tensors that require gradients are recorded
    inference   whether `inference_mode` forbids recording
    batch       the batch that ops are deferred to, or None
    """

    recording: bool = True
    inference: bool = False
    batch: Any = None


class _Thread(threading.local):
    follow: Callable[[Any], object] | None = None  # how the compiled tape comes to read the blocks of a thread

    lasting: Any = None

    def __init__(self) -> None:
        self.blocks: Table[Mode] = {}  # those that this thread is in, the innermost last
        self._followed = None if self.follow is None else self.follow(self.blocks)


thread = _Thread()
_kinds = {(on, off): Mode(on, off) for on, off in itertools.product((False, True), repeat=2)}
_outside = _kinds[True, False]


def follow_modes(follow: Callable[[Any], object]) -> None:
    """Let the compiled tape read the blocks of every thread: keep the result of `follow(blocks)` alive."""
    _Thread.follow = staticmethod(follow)
    thread._followed = follow(thread.blocks)


def now() -> Mode:
    """The mode in which ops run in this thread."""
    return innermost(thread.blocks, _outside)


def is_grad_enabled() -> bool:
    """Whether ops on tensors that require gradients are recorded in this thread."""
    return now().recording


capture.pause(lambda: 0 if now().recording else len(thread.blocks))


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return now().inference


class _Recording(Block, ContextDecorator):
    """Base of the blocks that switch recording on or off."""

    _mode: Mode  # of this block outside of any other

    def __enter__(self) -> None:
        # The same as `enter(thread.blocks, self.hold(), mode)`, in two thirds of the time.
        hold, self._hold = self._hold, None
        if hold is None or hold() is None:
            hold = self.by_hand()
        blocks = thread.blocks
        blocks[ref(hold(), blocks.pop)] = self._within(now()) if blocks else self._mode

    def _within(self, outer: Mode) -> Mode:
        """The mode of this block when it is inside another block of mode `outer`."""
        mode = self._mode
        recording = mode.recording and not outer.inference
        return outer._replace(recording=recording) if outer.batch else _kinds[recording, outer.inference]

    def _recreate_cm(self) -> _Recording:
        """A new block for one call of a function that this block decorates."""
        block = recording(self._mode.recording)
        block._mode, block._within = self._mode, self._within  # type: ignore[method-assign]
        return block

    def __call__(self, function: Any) -> Any:
        """Decorate a function: a new block surrounds each call, or each step of a generator."""
        if not inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def call_within(*args: Any, **options: Any) -> Any:
                with self._recreate_cm():
                    return dispatch.callee(function)(*args, **options)

            return call_within

        @functools.wraps(function)
        def step_through(*args: Any, **options: Any) -> Any:
            steps = function(*args, **options)
            step: Callable[[], Any] = functools.partial(next, steps)
            while True:
                try:
                    with self._recreate_cm():
                        value = step()
                except StopIteration as end:
                    return end.value
                try:
                    step = functools.partial(steps.send, (yield value))
                except GeneratorExit:
                    with self._recreate_cm():
                        steps.close()
                    raise
                except BaseException as error:  # noqa: BLE001  (what was thrown in goes on to the generator)
                    step = functools.partial(steps.throw, error)

        return step_through


class recording(_Recording):  # noqa: N801
    """Switch recording on or off inside the block."""

    def __init__(self, mode: bool) -> None:
        self._mode = _kinds[bool(mode), False]


class set_grad_enabled(recording):  # noqa: N801  (a context manager, named as PyTorch names it)
    """Switch recording on or off: from here to the end of the block around, or inside a `with`; also a decorator."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        blocks = thread.blocks
        if not blocks:
            thread.lasting = _Lasting()
            blocks[ref(thread.lasting, blocks.pop)] = _outside
        here = next(reversed(blocks))
        self._before: tuple[Any, Mode] | None = (here, blocks[here])
        blocks[here] = self._within(blocks[here])

    def _take_back(self) -> None:
        before, self._before = self._before, None
        if before is not None and before[0] in thread.blocks:
            thread.blocks[before[0]] = before[1]

    def __enter__(self) -> None:
        self._take_back()
        super().__enter__()

    def __call__(self, function: Any) -> Any:
        """Decorate a function: a new block surrounds each call."""
        self._take_back()
        return super().__call__(function)


class _Lasting:
    """An object that keeps the mode of a thread alive outside of any block, once a statement has set it."""


class _Bare(_Recording):
    """Base of blocks that also decorate without brackets, as `@no_grad`."""

    def __new__(cls, function: Any = None) -> Any:
        """Make the block; or, given a function, decorate the function."""
        return cls()(function) if callable(function) else super().__new__(cls)


class no_grad(_Bare):  # noqa: N801
    """Switch recording off inside the block; also a decorator."""

    _mode = _kinds[False, False]


class enable_grad(_Bare):  # noqa: N801
    """Switch recording on inside the block, also within `no_grad`; also a decorator."""

    _mode = _kinds[True, False]


class inference_mode(_Bare):  # noqa: N801
    """Switch recording off inside the block, even within `enable_grad`; also a decorator.

    Tensors made inside are ordinary tensors: PyTorch's restrictions on their later use do not apply.
    `inference_mode(False)` switches recording on, as `enable_grad` does outside.
    """

    def __init__(self, mode: bool = True) -> None:
        self._mode = _kinds[not mode, bool(mode)]

    def _within(self, outer: Mode) -> Mode:
        return self._mode._replace(batch=outer.batch)
