"""Real inputs for the workloads: handwritten digits, lines of source text and syntax trees.

The digits ship with the package. Text and trees come from the standard library of the running interpreter,
so they differ between Python versions; `fingerprint()` names the version they came from.
"""

from compare.workloads.data.sources import fingerprint, load_digits, minibatches, source_lines
from compare.workloads.data.trees import SyntaxTree, Tree, syntax_trees

__all__ = ["SyntaxTree", "Tree", "fingerprint", "load_digits", "minibatches", "source_lines", "syntax_trees"]
