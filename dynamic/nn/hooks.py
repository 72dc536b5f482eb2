"""Functions that are called before and after a module's `forward`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Hook = Callable[..., Any]
Entry = tuple[Hook, bool]  # and whether it is given the named arguments


class Hooks:
    """The hooks of one module, in the order in which they are called."""

    def __init__(self) -> None:
        self.before: list[Entry] = []
        self.after: list[Entry] = []

    def add(self, when: str, hook: Hook, first: bool, named: bool) -> Removable:
        """Add a hook at the end, or `first`; what is returned removes it."""
        entries: list[Entry] = getattr(self, when)
        entry = (hook, named)
        entries.insert(0 if first else len(entries), entry)
        return Removable(entries, entry)

    def run(self, module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The module's `forward` between its hooks."""
        for hook, named in tuple(self.before):
            args, options = _replaced(hook, named, module, args, options)
        output = module.forward(*args, **options)
        for hook, named in tuple(self.after):
            replaced = hook(module, args, options, output) if named else hook(module, args, output)
            output = output if replaced is None else replaced
        return output


class Removable:
    """Removes a hook again."""

    def __init__(self, entries: list[Entry], entry: Entry) -> None:
        self._entries, self._entry = entries, entry

    def remove(self) -> None:
        """Stop calling the hook; a second call does nothing."""
        self._entries[:] = [entry for entry in self._entries if entry is not self._entry]


def _replaced(hook: Hook, named: bool, module: Any, args: Any, options: Any) -> tuple[Any, Any]:
    replaced = hook(module, args, options) if named else hook(module, args)
    if replaced is None:
        return args, options
    if named:
        return replaced
    return (replaced if isinstance(replaced, tuple) else (replaced,)), options
