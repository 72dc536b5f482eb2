"""Graphs written as ONNX models, for other programs to run. Needs `graphduel[onnx]`.

`writer` has the table of rules that write ops, which `arrays` and `elementwise` fill. `model_of` makes the model of a
traced function.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from graphs import tree
from static.exporting import arrays, elementwise  # noqa: F401  (they fill the table)
from static.exporting.writer import OPSET, UNDRAWN, OnnxWriter, UnwritableError, value_of
from static.trace.tracing import TracedFunction

_IR_VERSION = 9  # of the file: the first that has this opset


def model_of(traced: TracedFunction) -> onnx.ModelProto:
    """Return the model of a traced function; inputs are named after the arguments' leaves, outputs after the result's.

    Tensors that the function reads besides its arguments become constants, with their present values. Raises
    UnwritableError, with its line, for an op that ONNX does not have, and for random numbers.
    """
    graph = traced.graph
    count = len(graph.inputs) - len(traced.reads)
    inputs = graph.inputs[:count]
    writer = OnnxWriter(graph)
    names = [node.attrs["name"] for node in inputs]
    taken = [writer.takes(name, node.spec) for name, node in zip(names, inputs, strict=True)]
    if any(getattr(source, "drawn", False) for source in traced.reads):
        raise UnwritableError(
            f"{graph.name} draws random numbers, which each run of a model would have again; {UNDRAWN}"
        )
    constants = [writer.constant(np.asarray(source.captured_array())) for source in traced.reads]
    results = writer.write(graph, [*names, *constants])
    outputs = [name if name not in writer.dtypes else writer.name(name) for name in _output_names(traced)]
    writer.nodes += [
        helper.make_node("Identity", [result], [name]) for result, name in zip(results, outputs, strict=True)
    ]
    made = helper.make_graph(
        [*writer.front, *writer.nodes],
        graph.name,
        taken,
        [value_of(name, node.spec) for name, node in zip(outputs, graph.outputs, strict=True)],
        initializer=writer.weights,
    )
    return helper.make_model(
        made, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="graphduel", ir_version=_IR_VERSION
    )


def _output_names(traced: TracedFunction) -> list[str]:
    numbered = tree.unflatten(traced.outputs, list(range(traced.outputs.num_leaves)))
    return tree.paths(lambda result: result, (numbered,))
