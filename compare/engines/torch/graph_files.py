"""The graphs that Dynamo captures of a step, each as a program that a file holds and that runs by itself.

Read `captured_programs`, then `FxProgram`. A program is a graph with inputs of its own. It is cut into halves of its
ops, and each half is a program again, whose inputs are the values that the whole has there.
"""

from __future__ import annotations

import base64
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from compare.engines import words
from compare.engines.mode import Mode
from compare.engines.step import Function, Step, Turns
from compare.engines.torch import dynamo
from compare.engines.torch.edits import KEYWORDS, MODEL, WHERE
from compare.engines.torch.spans import LEAST, begin_call, line_of, patch_method
from compare.errors import UnsupportedError
from graphs.errors import plain

WHOLE_VALUES = 65_536
"""The bytes of inputs up to which a file that shows a wrong result holds the values themselves."""
FEW = 64
"""The number of elements up to which a file holds the values of any input."""
SCOPES = ("_enter_", "_exit_", "_set_")
"""The starts of names of ops that change how later ops run: a graph that has them is not cut."""
TEMPLATE = '''"""{title}

{said}
`python {file}` measures it again, and so does
graphduel compare {file}:step --mode {word}
"""

import base64
import math
import statistics
import time

import torch
from torch.utils._pytree import tree_leaves

{imports}

OPTIONS = {options}
BLOCKS, SECONDS = 20, 0.02


class GraphModule(torch.nn.Module):
    """The ops as Dynamo has captured them."""

{forward}


graph = GraphModule()


def make(shape, dtype, low, high, mean, spread):
    """A tensor of numbers drawn at random, within the bounds of those that the step has had."""
    drawn = torch.Generator().manual_seed(0)
    if dtype is torch.bool:
        return torch.rand(shape, generator=drawn) < mean
    if dtype.is_floating_point or dtype.is_complex:
        x = torch.randn(shape, generator=drawn, dtype=torch.complex64 if dtype.is_complex else torch.float32)
        x = x * spread + mean
        return (x if dtype.is_complex else x.clamp(low, high)).to(dtype)
    return torch.randint(low, high + 1, shape, generator=drawn, dtype=dtype)


def known(shape, dtype, values):
    """A tensor of the step's own numbers."""
    return torch.frombuffer(bytearray(base64.b64decode(values)), dtype=dtype).reshape(shape).clone()


def leaf(x, stride, grad):
    """A tensor with these strides, which requires a gradient or none."""
    return torch.empty_strided(x.shape, stride, dtype=x.dtype).copy_(x).requires_grad_(grad)


def batches():
    return [({inputs})]


def both_passes(module, inputs):
    """Run a module and its backward pass; return its outputs and the gradients of its inputs."""
    wanted = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor) and x.requires_grad]
    for x in wanted:
        x.grad = None
    outputs = [y for y in tree_leaves(module(*inputs)) if isinstance(y, torch.Tensor)]
    lost = [y for y in outputs if y.requires_grad]
    if lost:
        torch.autograd.backward(lost, [torch.ones_like(y) for y in lost])
    return [y.detach() for y in outputs], [x.grad for x in wanted if x.grad is not None]


def step(*inputs):
    return both_passes(graph, inputs)


def seconds(module, inputs, count):
    start = time.perf_counter()
    for _ in range(count):
        both_passes(module, inputs)
    return (time.perf_counter() - start) / count


def main():
    torch.set_num_threads({threads})
    (inputs,) = batches()
    compiled = GraphModule()
    compiled.compile(**OPTIONS)
    pairs = [tree_leaves(both_passes(each, inputs)) for each in (graph, compiled)]
    off = max(((a.double() - b.double()).abs().max().item() for a, b in zip(*pairs) if a.numel()), default=0.0)
    counts = [max(1, round(SECONDS / seconds(each, inputs, 3))) for each in (graph, compiled)]
    blocks = [[seconds(*each) for each in ((graph, inputs, counts[0]), (compiled, inputs, counts[1]))]
              for _ in range(BLOCKS)]
    logs = [math.log(late / early) for early, late in blocks]
    middle, half = statistics.mean(logs), 1.96 * statistics.stdev(logs) / math.sqrt(BLOCKS)
    eager, late = (statistics.median(each) * 1e6 for each in zip(*blocks))
    low, ratio, high = (math.exp(middle + each) for each in (-half, 0, half))
    print(f"eager {{eager:.4g}} µs, compiled {{late:.4g}} µs: {{ratio:.2f}} times [{{low:.2f}}, {{high:.2f}}]")
    print(f"the largest difference of a number: {{off:.3g}}")


if __name__ == "__main__":
    main()
'''


@dataclass(frozen=True)
class FxProgram:
    """A captured graph with its inputs, and the mode that compiles it alone.

    `graph` is one of `torch.fx`, whose placeholders are the `inputs` in order. `word` is the mode's, and `options` are
    those of `torch.compile`.
    """

    graph: Any
    inputs: tuple[Any, ...]
    word: str
    options: Mapping[str, Any]

    @cached_property
    def nodes(self) -> list[Any]:
        """Return the nodes of ops, in order."""
        return _ops_of(self.graph)

    @property
    def ops(self) -> list[str]:
        """Return the name of each op with the user's line, as `cumsum (step.py:31)`."""
        return [f"{_name(node)} ({line})" if (line := line_of(node)) else _name(node) for node in self.nodes]

    @property
    def line(self) -> str:
        """Return the first line of the user's in it, `step.py:31`; "" where there is none."""
        return next(filter(None, map(line_of, self.nodes)), "")

    @property
    def halves(self) -> list[FxProgram]:
        """Return both halves of its ops as programs; [] where it cannot be cut."""
        import torch

        middle = len(self.nodes) // 2
        if not middle or any(_name(node).startswith(SCOPES) for node in self.nodes):
            return []
        module = torch.fx.GraphModule(torch.nn.Module(), self.graph)
        return _cut(module, (self.nodes[:middle], self.nodes[middle:]), self.inputs, self.word, self.options)

    @property
    def least(self) -> FxProgram:
        """Return a program of one op on one number, which is differentiated if this one is."""
        import torch

        graph = torch.fx.Graph()
        graph.output((graph.call_function(torch.add, (graph.placeholder("x"), 1)),))
        grad = any(isinstance(x, torch.Tensor) and x.requires_grad for x in self.inputs)
        return FxProgram(graph, (torch.ones(()).requires_grad_(grad),), self.word, self.options)

    def text(self, file: str = "graph.py", title: str = "", said: str = "", *, exact: bool = False) -> str:
        """Return the file; with `exact` its inputs are the step's own numbers, if they are few.

        Raises UnsupportedError for a graph that no file can hold.
        """
        import torch
        from torch.fx.graph_module import _format_import_block
        from torch.package import sys_importer

        exact = exact and sum(x.nbytes for x in self.inputs if isinstance(x, torch.Tensor)) <= WHOLE_VALUES
        code = self.graph.python_code("self")
        try:
            imports = _format_import_block(code.globals, sys_importer)
        except Exception as error:
            raise UnsupportedError(f"it has an object that no file can hold: {error}") from error
        forward = "\n".join(f"    {line}".rstrip() for line in code.src.strip().splitlines())
        inputs = "".join(f"\n        {_literal(value, exact=exact)}," for value in self.inputs)
        return TEMPLATE.format(
            title=plain(title), said=said, file=file, word=_shell_word(self.word), imports=imports, forward=forward,
            options=dict(self.options), inputs=f"{inputs}\n    ", threads=torch.get_num_threads(),
        )  # fmt: skip

    def module(self, *, exact: bool) -> ModuleType:
        """Return the file as a module, with `step` and `batches`. Raises UnsupportedError as `text` does."""
        module = ModuleType("graph")
        exec(compile(self.text(exact=exact), "graph.py", "exec"), vars(module))  # noqa: S102  (the text is made above)
        return module


def _shell_word(word: str) -> str:
    """Return a word of a mode as a shell takes it, which has single quotes of its own."""
    return shlex.quote(word) if {*'"$`\\!'} & {*word} else f'"{word}"'


def _ops_of(graph: Any) -> list[Any]:
    return [node for node in graph.nodes if node.op.startswith("call_")]


def _name(node: Any) -> str:
    return str(getattr(node.target, "__name__", node.target))


# Capturing ------------------------------------------------------------------------------------------------------------


def captured_programs(
    mode: Mode, make: Callable[[str], Step], index: int, turns: Callable[[Step], Turns]
) -> list[FxProgram]:
    """Return the graphs of a call by index, in the order in which they ran; nothing is compiled.

    `make` makes the step of a mode by its word. The mode of the programs compiles as `mode` does.

    Raises UnsupportedError where no graph runs, or where one cannot be a program.
    """
    rest = {name: value for name, value in mode.options.items() if name not in KEYWORDS}
    bare = {name: value for name, value in mode.options.items() if name not in ("backend", "mode", "options")}
    dynamo.forget()
    seen: dict[str, _Capture] = {}
    with _capturing(seen):
        step = make(words.text(mode.compiler, {**bare, "backend": "eager"}))
        call, begin = step.bind(index), turns(step)
        with step.within():
            for _ in range(LEAST):
                seen.clear()
                begin_call(begin)
                call.run()
    if not seen:
        raise UnsupportedError("no graph that Dynamo has captured runs in it")
    word, options = words.text(mode.compiler, {**rest, WHERE: MODEL}), _compiler_options(rest)
    return [
        program
        for each in seen.values()
        for program in _cut(each.module, (_ops_of(each.module.graph),), each.inputs, word, options)
    ]


def _compiler_options(options: Mapping[str, Any]) -> dict[str, Any]:
    import inspect

    import torch

    taken = inspect.signature(torch.compile).parameters
    return {name: value for name, value in options.items() if name in taken}


@dataclass(frozen=True)
class _Capture:
    module: Any
    inputs: tuple[Any, ...]


@contextmanager
def _capturing(seen: dict[str, _Capture]) -> Iterator[None]:
    """A context in which each graph that runs is noted with its inputs, the first time that it does."""
    from torch._dynamo.output_graph import OutputGraph
    from torch._guards import CompileContext

    def noting(compiler: Function) -> Function:
        def compile_(output: Any, module: Any, *args: Any) -> Any:
            name, compiled = str(CompileContext.current_compile_id()), compiler(output, module, *args)

            def run(*inputs: Any) -> Any:
                if name not in seen:
                    seen[name] = _Capture(module, tuple(map(_copy_value, inputs)))
                return compiled(*inputs)

            return run

        return compile_

    with patch_method(OutputGraph, "call_user_compiler", noting):
        yield


def _copy_value(value: Any) -> Any:
    """Return a value in which tensors are leaves of their own."""
    import torch

    if isinstance(value, (tuple, list)):
        return tuple(map(_copy_value, value))
    if not isinstance(value, torch.Tensor):
        return value
    grad = value.requires_grad and torch.is_grad_enabled()
    with torch.no_grad():
        return value.detach().clone().requires_grad_(grad)


# Cutting --------------------------------------------------------------------------------------------------------------


def _cut(
    module: Any, parts: Sequence[Sequence[Any]], inputs: tuple[Any, ...], word: str, options: Mapping[str, Any]
) -> list[FxProgram]:
    """Return parts of a graph, nodes each, as programs, whose inputs are the values that they have in the whole.

    The whole runs once for all parts. Raises UnsupportedError for a graph that holds graphs.
    """
    reads = [
        [node for node in module.graph.nodes if node not in chosen and any(user in chosen for user in node.users)]
        for chosen in map(set, parts)
    ]
    values = _values(module, [node for read in reads for node in read], inputs)
    return [
        FxProgram(_part(nodes, read, values), tuple(values[node] for node in read), word, options)
        for nodes, read in zip(parts, reads, strict=True)
    ]


def _part(nodes: Sequence[Any], read: Sequence[Any], values: Mapping[Any, Any]) -> Any:
    """Return some nodes of a graph as a graph of what they read; its outputs are what the rest of the graph reads."""
    import torch

    chosen, part, copies = {*nodes}, torch.fx.Graph(), dict[Any, Any]()
    for node in read:
        if isinstance(values[node], torch.nn.Module):
            raise UnsupportedError(f"{node.name} is a graph inside of it")
        copies[node] = part.placeholder(node.name)
    for node in nodes:
        copies[node] = part.node_copy(node, copies.__getitem__)
    outputs = [node for node in nodes if not node.users or any(user not in chosen for user in node.users)]
    part.output(tuple(copies[node] for node in outputs))
    return part


def _values(module: Any, nodes: Sequence[Any], inputs: tuple[Any, ...]) -> dict[Any, Any]:
    """Return the values of nodes in a run of a graph, as it is when the node has run."""
    import torch

    wanted, values = {*nodes}, dict[Any, Any]()

    class Reading(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            value = super().run_node(n)
            if n in wanted:
                values[n] = _copy_value(value)
            return value

    Reading(module).run(*map(_copy_value, inputs))
    return values


# Inputs as text -------------------------------------------------------------------------------------------------------


def _literal(value: Any, *, exact: bool) -> str:
    """Return a value as the file has it. Raises UnsupportedError for what no file can hold."""
    import torch

    if isinstance(value, torch.Tensor):
        return _tensor(value, exact=exact)
    if isinstance(value, (tuple, list)):
        return f"({''.join(f'{_literal(each, exact=exact)}, ' for each in value)})"
    if isinstance(value, (torch.dtype, torch.layout)) or value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    raise UnsupportedError(f"it takes a {type(value).__name__}, which no file can hold")


def _tensor(x: Any, *, exact: bool) -> str:
    import torch

    held = x.detach().contiguous()
    if not x.numel():
        made = f"torch.empty({tuple(x.shape)}, dtype={x.dtype})"
    elif exact or x.numel() <= FEW:
        values = base64.b64encode(held.flatten().view(torch.uint8).numpy().tobytes()).decode()
        made = f"known({tuple(x.shape)}, {x.dtype}, {values!r})"
    else:
        made = f"make({tuple(x.shape)}, {x.dtype}, {', '.join(map(repr, _spread(held)))})"
    return f"leaf({made}, {tuple(x.stride())}, {x.requires_grad})"


def _spread(x: Any) -> tuple[float | int, ...]:
    """Return the least and the largest number of a tensor, the mean, and the deviation; of those that are finite."""
    import torch

    if x.dtype is torch.bool:
        return 0, 1, round(float(x.double().mean()), 4), 0.0
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        return int(x.min()), int(x.max()), 0.0, 0.0
    finite = torch.view_as_real(x).double() if x.dtype.is_complex else x.double()
    finite = finite[torch.isfinite(finite)]
    if not finite.numel():
        return 0.0, 0.0, 0.0, 0.0
    spread = float(finite.std()) if finite.numel() > 1 else 0.0
    return float(finite.min()), float(finite.max()), float(finite.mean()), spread
