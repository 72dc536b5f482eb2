"""Graphs for others to run: written as models of ONNX. Needs `graphduel[onnx]`.

`writer` has the table of how ops are written, which the files beside it fill; `model` makes the model of a trace.
"""
