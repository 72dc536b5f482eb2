"""Real inputs for the workloads: handwritten digits, lines of source text and syntax trees.

The UCI digits, 1797 images of 8 x 8 pixels, ship with the package, split once and for all. Text and trees come from
the standard library of the running interpreter, so they differ between Python versions; `fingerprint()` names the
version they came from. Lines are sequences of character ids, of a small vocabulary and naturally varying lengths.
Trees are nested tuples of ints: a structure of its own for nearly every example.
"""

import ast
import hashlib
import platform
import random
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["SyntaxTree", "Tree", "fingerprint", "load_digits", "minibatches", "source_lines", "syntax_trees"]


T = TypeVar("T")

# One file has one author's style; a sample comes from at least this many.
_FEWEST_FILES = 4
_POOL_PER_ITEM = 2


@cache
def source_files() -> tuple[Path, ...]:
    """The public top-level modules of the standard library, sorted by name.

    Names that start with an underscore are left out: some of them are generated when Python is built.
    Raises FileNotFoundError where the standard library is not there as source files.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not files:
        raise FileNotFoundError(f"no standard library sources in {folder}; use a Python that ships its .py files")
    return tuple(files)


@cache
def fingerprint() -> str:
    """What text and trees depend on: `CPython-3.11.7-1a2b3c4d5e6f`, with a hash of the sources at its end."""
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{platform.python_implementation()}-{platform.python_version()}-{digest.hexdigest()[:12]}"


def sample(extract: Callable[[bytes], Iterable[T]], count: int, seed: int) -> tuple[T, ...]:
    """`count` different items that `extract` finds in the sources, in an order that the seed decides.

    Files are read in random order, and only until there are items enough to choose from.
    Raises ValueError when `count` is negative or more than all the sources hold.
    """
    rng = random.Random(seed)
    files = list(source_files())
    rng.shuffle(files)
    pool: list[T] = []
    for number, path in enumerate(files):
        if number >= _FEWEST_FILES and len(pool) >= count * _POOL_PER_ITEM:
            break
        pool.extend(extract(path.read_bytes()))
    if not 0 <= count <= len(pool):
        raise ValueError(f"asked for {count} items, the standard library has {len(pool)} that fit; ask for fewer")
    return tuple(rng.sample(pool, count))


Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

TEST_SIZE = 360
_FILE = Path(__file__).with_name("digits.npz")
_BRIGHTEST = 16
_SPLIT_SEED = 1998


def load_digits() -> tuple[Images, Labels, Images, Labels]:
    """The digits as `(x_train, y_train, x_test, y_test)`, in the same split and order every time.

    Images are float32[N, 64] in [0, 1], row by row; labels are int64[N] in 0..9. N is 1437 for training and
    360 for testing. Source and licence: LICENSE-digits.md beside this file.
    """
    with np.load(_FILE, allow_pickle=False) as stored:
        pixels, labels = stored["pixels"], stored["labels"]
    order = _split_order(len(labels))
    images = pixels[order].astype(np.float32) / np.float32(_BRIGHTEST)
    classes = labels[order].astype(np.int64)
    return images[:-TEST_SIZE], classes[:-TEST_SIZE], images[-TEST_SIZE:], classes[-TEST_SIZE:]


def minibatches(rng: np.random.Generator, batch: int, batches: int) -> tuple[tuple[Images, Labels], ...]:
    """Disjoint minibatches of the training digits. Raises ValueError when these do not suffice."""
    x, y, _, _ = load_digits()
    if batch * batches > len(x):
        raise ValueError(f"{batches} batches of {batch} need {batch * batches} digits, there are {len(x)}")
    order = rng.permutation(len(x))[: batch * batches].reshape(batches, batch)
    return tuple((x[rows], y[rows]) for rows in order)


def _split_order(count: int) -> npt.NDArray[np.intp]:
    # NumPy keeps the raw stream of a bit generator for ever; that of Generator.permutation may change.
    return np.argsort(np.random.PCG64(_SPLIT_SEED).random_raw(count), kind="stable")


Ids = npt.NDArray[np.int64]

_FIRST = ord(" ")
UNKNOWN = ord("~") - _FIRST + 1
VOCABULARY_SIZE = UNKNOWN + 1
_SHORTEST = 2


def source_lines(count: int, seed: int = 0, max_length: int = 80) -> tuple[Ids, ...]:
    """`count` lines of standard library source, each int64[T] with 2 <= T <= max_length, indentation kept.

    Ids are 0..94 for printable ASCII, from the space on, and 95 (`UNKNOWN`) for any other character. Longer
    lines are left out rather than cut, so that lengths follow real lines. Equal arguments give equal lines
    under an equal `fingerprint()`. Raises ValueError when there are not `count` lines that fit.
    """

    def lines(source: bytes) -> Iterator[str]:
        for line in map(str.rstrip, source.decode("utf-8", "replace").splitlines()):
            if _SHORTEST <= len(line) <= max_length:
                yield line

    return tuple(map(encode, sample(lines, count, seed)))


def encode(line: str) -> Ids:
    """The ids of the characters of a line, int64[T]."""
    codes = np.frombuffer(line.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64) - _FIRST
    return np.where((codes >= 0) & (codes < UNKNOWN), codes, UNKNOWN)


def decode(ids: Ids) -> str:
    """The line that ids stand for; unknown characters come back as U+FFFD."""
    return "".join("\ufffd" if i == UNKNOWN else chr(i + _FIRST) for i in ids.tolist())


# Syntax trees ---------------------------------------------------------------------------------------------------------


Tree: TypeAlias = tuple[int, tuple["Tree", ...]]

# Below this, few shapes exist and most statements repeat one: `x = y`, `return x`, `import x`.
_FEWEST_NODES = 8


class SyntaxTree(NamedTuple):
    """A tree `(type id, children)` and the number of its nodes."""

    root: Tree
    nodes: int


def _node_types() -> tuple[str, ...]:
    # vars() rather than getattr: later Pythons warn when the names of retired node types are looked up.
    types = (value for value in vars(ast).values() if isinstance(value, type) and issubclass(value, ast.AST))
    return tuple(sorted({kind.__name__ for kind in types}))


NODE_TYPES = _node_types()
"""The names of all node types of this Python, sorted; a type id is an index into it."""

_TYPE_IDS = {name: number for number, name in enumerate(NODE_TYPES)}


def syntax_trees(count: int, seed: int = 0, max_nodes: int = 64) -> tuple[SyntaxTree, ...]:
    """`count` syntax trees of standard library code, each of 8 to `max_nodes` nodes.

    A tree is the largest statement that fits: a whole function or class where it is small enough, else its
    parts, so no tree is inside another. Load/Store/Del marks are left out. Equal arguments give equal trees
    under an equal `fingerprint()`. Raises ValueError when there are not `count` trees that fit.
    """

    def trees(source: bytes) -> Iterator[SyntaxTree]:
        return fitting_statements(ast.parse(source), max_nodes)

    return sample(trees, count, seed)


def fitting_statements(module: ast.AST, max_nodes: int) -> Iterator[SyntaxTree]:
    """The outermost statements below a node that have 8 to `max_nodes` nodes, in source order."""
    encoded = encode_tree(module)
    stack = [module]
    while stack:
        node = stack.pop()
        tree = encoded[node]
        if isinstance(node, ast.stmt) and tree.nodes <= max_nodes:
            if tree.nodes >= _FEWEST_NODES:
                yield tree
        else:
            stack.extend(reversed(children(node)))


def encode_tree(root: ast.AST) -> dict[ast.AST, SyntaxTree]:
    """The tree of every node at and below `root`; no recursion, so depth has no limit."""
    encoded: dict[ast.AST, SyntaxTree] = {}
    for node in reversed(_parents_first(root)):
        parts = [encoded[child] for child in children(node)]
        tree = (_TYPE_IDS[type(node).__name__], tuple(part.root for part in parts))
        encoded[node] = SyntaxTree(tree, 1 + sum(part.nodes for part in parts))
    return encoded


def children(node: ast.AST) -> list[ast.AST]:
    """The child nodes in source order, without the Load/Store/Del marks."""
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]


def _parents_first(root: ast.AST) -> list[ast.AST]:
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(children(node))
    return order
