"""Graphs written as ONNX models, for other programs to run. Needs `graphduel[onnx]`.

`writer` has the table of rules that write ops, which the other files fill; `model` makes the model of a traced
function.
"""
