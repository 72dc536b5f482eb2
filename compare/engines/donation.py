"""Calls of JAX that own their arrays: a function may donate its arguments, and an array can be donated only once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from compare.engines.state import Piece
from compare.engines.step import Bindable, BoundCall, bind_call


class Donations:
    """The bound calls with copied arguments, found by the id of each array that they copied."""

    def __init__(self) -> None:
        self._calls: defaultdict[int, WeakSet[_OwnCall]] = defaultdict(WeakSet)

    def bind(self, built: Callable[..., Any], args: tuple[Any, ...]) -> BoundCall:
        """Bind a call with copies of its arrays; a run whose copies were donated is given new copies by `kept`."""
        call = _OwnCall(built, args)
        for leaf in _arrays(args):
            self._calls[id(leaf)].add(call)
        return BoundCall(call.run, call.result, call.now.within)

    def kept(self, array: Any) -> Piece:
        """Return a piece that restores an array: calls that have donated a copy of it get new copies."""

        def same() -> bool:
            return not any(call.is_spent for call in self._calls.get(id(array), ()))

        def back() -> None:
            for call in self._calls.get(id(array), ()):
                if call.is_spent:
                    call.renew()

        return Piece(same, back)


class _OwnCall:
    def __init__(self, built: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.built, self.args = built, args  # which also keeps the ids of the arrays
        self.renew()

    def renew(self) -> None:
        """Make new copies of the arguments and bind the call to them."""
        args = copy_arguments(self.args)
        self.copies, self.now = _arrays(args), bind_call(self.built, args)

    def run(self) -> Any:
        """Run the call with the current copies."""
        return self.now.run()

    def result(self, returned: Any) -> Any:
        """Return the value and the gradients."""
        return self.now.result(returned)

    @property
    def is_spent(self) -> bool:
        """Return whether a copy has been donated."""
        return any(copy.is_deleted() for copy in self.copies)


class DonatingStep(Bindable):
    """A step whose calls own copies of their arrays."""

    def __init__(self, built: Callable[..., Any], donations: Donations) -> None:
        self.run, self.donations = built, donations

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step to copies of its arrays."""
        return self.donations.bind(self.run, args)


def copy_arguments(args: Any) -> Any:
    """Return the arguments with copies of their arrays."""
    import jax

    return jax.tree_util.tree_map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, args)


def _arrays(tree: Any) -> list[Any]:
    import jax

    return [leaf for leaf in jax.tree_util.tree_leaves(tree) if isinstance(leaf, jax.Array)]
