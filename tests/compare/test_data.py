"""The shipped digits, and the text and trees drawn from the standard library."""

import ast
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.workloads.data import (
    NODE_TYPES,
    UNKNOWN,
    VOCABULARY_SIZE,
    Tree,
    decode,
    encode,
    encode_tree,
    fingerprint,
    fitting_statements,
    load_digits,
    source_files,
    source_lines,
    syntax_trees,
)

# As published with the set: the images of each digit among the 13 writers kept for testing.
PUBLISHED_COUNTS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_digits_are_the_published_set():
    x_train, y_train, x_test, y_test = load_digits()
    assert (x_train.shape, x_test.shape) == ((1437, 64), (360, 64))
    assert (x_train.dtype, y_train.dtype) == (np.float32, np.int64)
    assert np.bincount(np.concatenate([y_train, y_test])).tolist() == PUBLISHED_COUNTS
    images = np.concatenate([x_train, x_test])
    assert (images.min(), images.max()) == (0, 1)
    assert set(np.unique(images * 16)) == set(range(17))
    assert (images * 16).sum(dtype=np.float64) == 561718


def test_the_split_never_changes():
    x_train, y_train, _, y_test = load_digits()
    assert y_train[:10].tolist() == [3, 0, 5, 8, 2, 5, 8, 9, 3, 7]
    assert y_test[:10].tolist() == [4, 7, 9, 7, 1, 3, 7, 7, 3, 5]
    assert np.array_equal(x_train, load_digits()[0])


def test_every_digit_is_well_represented_on_both_sides():
    _, y_train, _, y_test = load_digits()
    assert np.bincount(y_train).min() >= 130
    assert np.bincount(y_test).min() >= 25


def test_digits_resemble_their_own_class_most():
    x_train, y_train, x_test, y_test = load_digits()
    means = np.stack([x_train[y_train == digit].mean(axis=0) for digit in range(10)])
    nearest = np.linalg.norm(x_test[:, None] - means, axis=2).argmin(axis=1)
    assert (nearest == y_test).mean() > 0.85


def test_lines_have_their_ids_lengths_and_seed():
    lines = source_lines(300, seed=1, max_length=60)
    assert len(lines) == 300
    assert all(line.dtype == np.int64 and 2 <= len(line) <= 60 for line in lines)
    assert all(line.min() >= 0 and line.max() < VOCABULARY_SIZE for line in lines)
    again, other = source_lines(300, seed=1, max_length=60), source_lines(300, seed=2, max_length=60)
    assert [decode(line) for line in lines] == [decode(line) for line in again]
    assert [decode(line) for line in lines] != [decode(line) for line in other]


def test_lengths_of_lines_vary_widely():
    lengths = [len(line) for line in source_lines(500)]
    assert len(set(lengths)) > 40
    assert np.percentile(lengths, 90) > 2 * np.percentile(lengths, 10)


def test_lines_are_lines_of_the_standard_library():
    known = {line.rstrip() for path in source_files() for line in path.read_text("utf-8").splitlines()}
    assert {decode(line) for line in source_lines(50) if UNKNOWN not in line} <= known


def test_characters_have_known_ids():
    assert encode(" A~").tolist() == [0, 33, 94]
    assert encode("\té\U0001f600").tolist() == [UNKNOWN] * 3
    assert VOCABULARY_SIZE == 96


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_text_survives_a_round_trip(line):
    assert decode(encode(line)) == line


@given(st.text(st.characters()))
def test_any_character_has_one_id(line):
    ids = encode(line)
    assert len(ids) == len(line)
    assert ((ids >= 0) & (ids < VOCABULARY_SIZE)).all()


def count_nodes(tree: Tree) -> int:
    return 1 + sum(map(count_nodes, tree[1]))


def test_trees_have_their_sizes_ids_and_seed():
    trees = syntax_trees(200, seed=3, max_nodes=40)
    assert len(trees) == 200
    assert all(tree.nodes == count_nodes(tree.root) for tree in trees)
    assert all(8 <= tree.nodes <= 40 for tree in trees)
    assert all(issubclass(getattr(ast, NODE_TYPES[tree.root[0]]), ast.stmt) for tree in trees)
    assert trees == syntax_trees(200, seed=3, max_nodes=40)
    assert trees != syntax_trees(200, seed=4, max_nodes=40)


def test_structures_of_trees_vary():
    trees = syntax_trees(200)
    assert len({tree.root for tree in trees}) > 120
    assert len({tree.nodes for tree in trees}) > 25


def test_a_tree_is_what_ast_says():
    statement = ast.parse("total = price * (1 + rate)").body[0]
    (tree,) = fitting_statements(statement, max_nodes=20)

    def names(part: Tree):
        return NODE_TYPES[part[0]], tuple(names(child) for child in part[1])

    leaf = [(name, ()) for name in ("Name", "Mult", "Constant", "Add")]
    inner = ("BinOp", (leaf[2], leaf[3], leaf[0]))
    assert names(tree.root) == ("Assign", (leaf[0], ("BinOp", (leaf[0], leaf[1], inner))))
    assert tree.nodes == 9


def test_a_function_too_large_gives_its_statements():
    source = "def f(x):\n    a = x + 1 * x - 2\n    b = a\n    return a + b * a - x\n"
    (whole,) = fitting_statements(ast.parse(source), max_nodes=100)
    parts = list(fitting_statements(ast.parse(source), max_nodes=whole.nodes - 1))
    kinds = [NODE_TYPES[part.root[0]] for part in parts]
    assert kinds == ["Assign", "Return"]
    assert [part.nodes for part in parts] == [12, 11]


@pytest.mark.slow
def test_depth_of_a_tree_is_not_limited_by_the_stack():
    node: ast.expr = ast.Name("x")
    for _ in range(50_000):
        node = ast.UnaryOp(ast.USub(), node)
    assert encode_tree(node)[node].nodes == 100_001


def test_asking_for_more_than_there_is_says_so():
    with pytest.raises(ValueError, match="asked for 10 items, the standard library has 0"):
        source_lines(10, max_length=1)
    with pytest.raises(ValueError, match="asked for -1"):
        source_lines(-1)


def test_the_fingerprint_names_the_interpreter():
    assert re.fullmatch(r"\w+-3\.\d+\.\d+\S*-[0-9a-f]{12}", fingerprint())


def test_sources_are_public_modules_in_a_fixed_order():
    names = [path.name for path in source_files()]
    assert names == sorted(names)
    assert {"ast.py", "functools.py", "typing.py"} <= set(names)
    assert not any(name.startswith("_") for name in names)
