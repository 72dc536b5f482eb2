"""One-line edits of the workloads' models, as somebody makes them who tries an idea."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from compare import workloads
from compare.workloads.programs.tokens import lines, tokens


@dataclass(frozen=True)
class SourceEdit:
    """In the source of a workload, `old` becomes `new` wherever it stands.

    Raises ValueError where the source no longer holds `old`.
    """

    workload: str
    old: str
    new: str

    @property
    def module(self) -> ModuleType:
        """The module of the workload as it is."""
        return import_module(workloads.source(self.workload).partition(":")[0])

    def source(self) -> str:
        """The source after the edit."""
        text = Path(str(self.module.__file__)).read_text(encoding="utf-8")
        if self.old not in text:
            raise ValueError(f"{self.workload}: {self.old!r} does not stand in its source; correct the edit")
        return text.replace(self.old, self.new)


EDITS = (
    SourceEdit("tiny_mlp", "graphs.tanh", "graphs.sin"),
    SourceEdit("elementwise_chain", "h / 2", "h / 3"),
    SourceEdit("mlp_digits", "x, graphs.relu", "x, graphs.tanh"),
    SourceEdit("conv_digits", "graphs.relu(h)", "graphs.tanh(h)"),
    SourceEdit("rnn_text", "return graphs.tanh(x", "return graphs.sin(x"),
    SourceEdit("encoder_text", "graphs.gelu(", "graphs.silu("),
    SourceEdit("tree_lstm", "return o * graphs.tanh(cell)", "return o * cell"),
    SourceEdit("branch_on_sum", "x - 2", "x - 3"),
    SourceEdit("early_exit", "graphs.relu(dense(block", "graphs.tanh(dense(block"),
    SourceEdit("moe_digits", "x, graphs.relu", "x, graphs.tanh"),
    SourceEdit("fixed_point", "graphs.tanh(", "graphs.sin("),
)


def length(model: FunctionType) -> dict[str, int]:
    """The lines and tokens of a function, and of those of its module that it needs."""
    needed = list(_helper_functions(model))
    return {"lines": sum(map(lines, needed)), "tokens": sum(len(tokens(function)) for function in needed)}


def _helper_functions(model: FunctionType) -> Iterator[FunctionType]:
    stack, seen = [model], {model}
    while stack:
        function = stack.pop()
        yield function
        for name in _names(function.__code__):
            other = function.__globals__.get(name)
            if isinstance(other, FunctionType) and other.__module__ == model.__module__ and other not in seen:
                seen.add(other)
                stack.append(other)


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function and those inside it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
