from collections.abc import Callable, Iterable, Sequence
from typing import Any

class Recorder:
    def __init__(
        self,
        *,
        kernel: Callable[..., Any],
        arity: int,
        find: Callable[[int, int, tuple[int | None, ...] | None], tuple[Any, tuple[tuple[int, Any], ...]]],
        ruled: int,
        is_elementwise: bool,
        layout: str = "any",
    ) -> None: ...

class Record:
    def __init__(
        self,
        *,
        recorder: Recorder,
        op: Any,
        general: Callable[..., Any],
        arity: int,
        prepared: Callable[..., Any] | None,
        swapped: bool,
        takes_numbers: bool,
        alike: bool,
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
        widens: bool,
        saved: int,
        values: int,
        inputs: int,
        code: tuple[Any, ...],
    ) -> None: ...
    def __call__(self, entry: Any, keep: bool, cotangents: dict[Any, Any]) -> None: ...

class Learned:
    known: list[tuple[tuple[Any, ...], Any]]
    def __init__(self, *, learn: Callable[[Any, Any], Any], otherwise: Callable[..., None], at_once: bool) -> None: ...
    def __call__(self, entry: Any, keep: bool, cotangents: dict[Any, Any]) -> None: ...

def binder(general: Callable[[Any, Sequence[Any], dict[str, Any]], Any], /) -> Callable[..., Any]: ...
def connect(**lent: Any) -> None: ...
def pool(threshold: int, limit: int, /) -> Any: ...
def enter_pool(pool: Any, /) -> bool: ...
def leave_pool(pool: Any, /) -> None: ...
def pool_stats(pool: Any, /) -> tuple[int, int, int, int, int]: ...
def follow(blocks: dict[Any, Any], /) -> object: ...
def step(
    tools: tuple[Any, Any, Any], f: Callable[..., Any], args: tuple[Any, ...], positions: list[int], /
) -> tuple[Any, ...] | None: ...
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
def sizes(tensor: Any, /) -> tuple[int, ...]: ...

sizes_getitem: Any  # a method descriptor of shapes
