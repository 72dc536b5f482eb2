from collections.abc import Callable, Iterable, Sequence
from typing import Any

class Record:
    def __init__(
        self,
        *,
        op: Any,
        kernel: Callable[..., Any],
        general: Callable[..., Any],
        arity: int | None,
        wants: dict[int, tuple[Any, Any, Any]],
        prepared: Callable[..., Any] | None,
        swapped: bool,
        by_axes: bool,
        takes_numbers: bool,
    ) -> None: ...
    def __call__(self, *args: Any, **options: Any) -> Any: ...

class Program:
    def __init__(
        self,
        *,
        otherwise: Callable[..., None],
        constants: tuple[Any, ...],
        typed: bool,
        conforms: bool,
        saved: int,
        values: int,
        inputs: int,
        code: tuple[Any, ...],
    ) -> None: ...
    def __call__(self, entry: Any, keep: bool, cotangents: dict[Any, Any]) -> None: ...

class Deferral:
    def __init__(self, *, op: Any, general: Callable[..., Any], arity: int) -> None: ...
    def __call__(self, *args: Any) -> Any: ...

def rows(value: Any, /) -> list[Any]: ...
def defer_call(batch: Any, f: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], /) -> Any: ...
def located(runs: list[Any], /) -> tuple[list[Any], bytes, bytes]: ...
def arrange(groups: list[list[Any]], places: int, /) -> None: ...
def awaited(nodes: list[Any], /) -> set[Any]: ...
def place(group: list[Any], block: Any, starts: Sequence[int], /) -> None: ...
def connect_batches(**lent: Any) -> None: ...
def connect(**lent: Any) -> None: ...
def arguments(
    args: Sequence[Any], positions: Sequence[int], /
) -> tuple[list[Any], list[Any], list[Any], list[tuple[Any, ...] | None]] | None: ...
def grouped(keys: list[tuple[Any, ...] | None], values: list[Any], /) -> tuple[Any, ...]: ...
def collect(
    found: dict[Any, Any],
    edges: list[Any],
    owned: Callable[[Any, set[int]], Any],
    zeros: Callable[[Any], Any],
    /,
) -> list[Any]: ...
def close(variables: list[Any], /) -> None: ...
def record(whether: bool, /) -> None: ...
def history(roots: Iterable[Any]) -> tuple[list[Any], set[Any]]: ...
def walk(
    entries: list[Any],
    cotangents: dict[Any, Any],
    reached: dict[Any, Any],
    wanted: frozenset[Any],
    keep: bool,
    attend: Callable[[Any, dict[Any, Any]], None],
    hooked: Callable[[Any, Any], Any],
    by_rules: Callable[[Any, bool, dict[Any, Any]], None],
    /,
) -> bool: ...
