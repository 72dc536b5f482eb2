"""The comparison: workloads, measurements, claims and their verdicts; `compare.compare` for a function of your own."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compare.own import compare as compare

__all__ = ["compare"]


def __getattr__(name: str) -> Any:
    """`compare.compare`, imported when it is first used: `import compare` alone loads neither engine."""
    if name == "compare":
        from compare.own import compare

        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
