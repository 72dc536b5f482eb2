"""Running on padded arrays: the result is cut to the true sizes, and padding is proved not to be seen in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from graphs import tree
from graphs.spec import OfTensor, TensorSpec
from static.call.cache import Stats
from static.call.executable import Executable
from static.call.policies import pad_axes
from static.padding.proof import Cropping, Names, Specialisation, bounds, prove_padding
from static.trace.tracing import static_key, trace


class Laid(NamedTuple):
    """How arguments are laid out: their containers, their static values, and the names of the axes of the others.

    `tensors` tells of each of the others whether it is a tensor of the dynamic engine, and no array.
    """

    structure: tree.Structure
    statics: tuple[Any, ...]
    names: list[Names]
    tensors: tuple[bool, ...]

    def filled(self, specs: Sequence[TensorSpec]) -> list[Any]:
        """Arguments from the static leaves, and from the specs of the traced ones in turn."""
        rest = iter([OfTensor(s.shape, s.dtype) if t else s for s, t in zip(specs, self.tensors, strict=True)])
        return list(tree.unflatten(self.structure, [next(rest) if leaf is None else leaf for leaf in self.statics]))


class Padding:
    """What is known of the padding of a function: how each kind of result is cut, and which sizes were proved."""

    def __init__(self, f: Callable[..., Any], check: bool, stats: Stats) -> None:
        self.f, self.check, self.stats = f, check, stats
        self._croppings: dict[Hashable, Cropping] = {}
        self._proved: set[Hashable] = set()

    def runner(self, executable: Executable, call: Specialisation, laid: Laid) -> Callable[[Sequence[Any]], Any]:
        """What pads arrays of the sizes of this call, runs, and cuts the result; and counts."""
        shapes = tuple([spec.shape for spec in call.specs])

        def run(arrays: Sequence[Any]) -> Any:
            wide = [pad_axes(a, axes, call.padded) for a, axes in zip(arrays, laid.names, strict=True)]
            for before, after, axes in zip(arrays, wide, laid.names, strict=True):
                if any(axes):
                    self.stats.useful += before.size
                    self.stats.computed += after.size
            return self._cropped(executable.run_leaves(shapes, wide), executable, call, arrays, laid)

        return run

    def _cropped(
        self, result: Any, executable: Executable, call: Specialisation, traced: Sequence[Any], laid: Laid
    ) -> Any:
        kind = laid.structure, tuple(map(static_key, laid.statics)), tuple([a.ndim for a in traced])
        if kind not in self._croppings:
            self._croppings[kind] = Cropping.of(self.f, laid.filled, call, laid.names)
        cropping = self._croppings[kind]
        cropped = cropping(result, call)
        if self.check and call.true != call.padded:
            at_most = bounds(traced, laid.names, call.true)
            sizes = kind, tuple(call.true.items()), tuple(call.padded.items()), at_most
            if sizes not in self._proved:
                unpadded = trace(self.f, *laid.filled([TensorSpec(a.shape, a.dtype) for a in traced]))
                prove_padding(executable.traced.graph, unpadded, call, at_most, cropping)
                self._proved.add(sizes)
        return cropped
