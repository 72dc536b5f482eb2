"""The comparison: workloads, measurements, claims and their verdicts; `compare.compare` for a function of your own."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from compare.advice import advise as advise
    from compare.own import compare as compare

__all__ = ["advise", "compare"]


def __getattr__(name: str) -> "Any":
    """The functions, imported when they are first used: `import compare` alone loads neither engine."""
    if name == "advise":
        from compare.advice import advise

        return advise
    if name == "compare":
        from compare.own import compare

        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: "Any") -> None:
    """`%load_ext compare`: the notebook has the cell magic `%%graphduel`."""
    from compare.notebook import magic

    shell.register_magic_function(magic(shell), "cell", "graphduel")


def __dir__() -> list[str]:
    """The public names, loaded or not, for completion."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
