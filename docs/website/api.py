"""The API reference: a page for each package, whose entries mkdocstrings reads from the docstrings."""

from __future__ import annotations

PACKAGES = {
    "graphs": (
        "What both engines share. All ops are listed in [ops.md](../ops.md).",
        {
            "Specs and dimensions": ("graphs.spec", "graphs.dims"),
            "Ops of your own": ("graphs.custom",),
            "Control flow": ("graphs.ops.control",),
            "Linear algebra": ("graphs.linalg",),
            "Optimisers as functions": ("graphs.optim",),
            "Drawings": ("graphs.drawing.drawing", "graphs.drawing.difference"),
            "Errors": ("graphs.errors",),
        },
    ),
    "dynamic": (
        "The engine that records a graph on every run. [torch-names.md](../torch-names.md) lists PyTorch's names.",
        {
            "Tensors": ("dynamic.tensor",),
            "Gradients": ("dynamic.gradients", "dynamic.functional"),
            "Memory and batches": ("dynamic.pool", "dynamic.checkpoint"),
            "Modules": ("dynamic.nn",),
            "Optimizers": ("dynamic.optim",),
        },
    ),
    "static": (
        "The engine that builds a graph once, and runs it many times.",
        {
            "Compile": ("static.call.compile", "static.call.jit", "static.call.executable", "static.call.compile"),
            "Differentiate": ("static.call.functional",),
            "Trace and convert": ("static.trace.tracing", "static.convert"),
            "Look inside": ("static.debug", "static.memory", "static.call.buckets"),
        },
    ),
    "compare": (
        "The experiment, and `compare.compare` for a function of yours.",
        {
            "A function of yours": ("compare.own:compare", "compare.own:Result"),
            "Advice": ("compare.advice:advise", "compare.advice:Advice"),
            "Claims": ("compare.claims.base",),
            "Workloads": ("compare.workloads.base",),
        },
    ),
}
"""For each package its introduction, and the modules under each heading, or the `module:object`."""


def pages() -> dict[str, str]:
    """The pages by name."""
    return {f"api/{name}.md": _page(name, *given) for name, given in PACKAGES.items()}


def _page(name: str, introduction: str, parts: dict[str, tuple[str, ...]]) -> str:
    headed = (f"\n## {title}\n" + "".join(map(_entry, entries)) for title, entries in parts.items())
    return f"# {name}\n\n{introduction}\n" + "".join(headed)


def _entry(entry: str) -> str:
    """The directive of mkdocstrings. A module has no heading of its own: its members stand in its place."""
    heading = str(":" in entry).lower()
    options = f"{{ heading_level: 3, show_root_heading: {heading}, show_root_toc_entry: {heading} }}"
    return f"\n::: {entry.replace(':', '.')}\n    options: {options}\n"
