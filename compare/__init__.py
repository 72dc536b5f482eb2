"""The comparison of the engines: workloads, measurements, claims and verdicts; `compare.compare` for own functions.

The path of a measurement, room by room: a subject (`subjects`) gets a plan of jobs (`plans`), which a runner (`run`)
hands to processes. Each of these makes records (`records`) by instruments (`instruments`). Verdicts are judged from
records (`claims`), and the report is drawn from both (`report`). `suite`, `own`, `gate` and `selftest` walk the path,
and `cli` has their commands.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from compare.advice import advise as advise
    from compare.own import compare as compare

__all__ = ["advise", "compare"]


def __getattr__(name: str) -> "Any":
    """Import a public function on its first use, so that `import compare` loads neither engine."""
    if name == "advise":
        from compare.advice import advise

        return advise
    if name == "compare":
        from compare.own import compare

        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: "Any") -> None:
    """Register the cell magic `%%graphduel`, for `%load_ext compare` in a notebook."""
    from compare.notebook import magic

    shell.register_magic_function(magic(shell), "cell", "graphduel")


def __dir__() -> list[str]:
    """Return the public names for completion, imported or not."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
