"""How much of a program is rewritten: what counts as a token, and the distance between two functions."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.workloads.edits import distance, share, tokens
from compare.workloads.programs import programs
from tests.helpers.together import together

WORDS = st.lists(st.sampled_from("abc"), max_size=8)


def bare(x):
    y = x + 1
    return bare(y) if y else None


def dressed(x: int, *, twice: bool = False) -> "int | None":
    """A docstring."""
    total: int = (x + 1)  # a comment  # fmt: skip
    return dressed(total)


def undressed(x, *, twice=False):
    total = x + 1
    return undressed(total)


def only_told(x: int) -> None:
    """Nothing else."""


def declared(x):
    y: int
    y = x
    return y


def test_visible_tokens_are_counted_and_the_own_name_is_not_told_apart():
    assert " ".join(tokens(bare)) == "def _ ( x ) : y = x + 1 return _ ( y ) if y else None"


def test_docstrings_comments_annotations_and_layout_do_not_count():
    assert tokens(dressed) == tokens(undressed)
    assert share(dressed, undressed) == 0
    assert " ".join(tokens(only_told)) == "def _ ( x ) : pass"
    assert " ".join(tokens(declared)) == "def _ ( x ) : y = x return y"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("abc", "abc", 0)],
)
def test_known_distances(first, second, expected):
    assert distance(list(first), list(second)) == expected


def by_definition(first, second):
    @functools.cache
    def to_go(i, j):
        if not i or not j:
            return i + j
        return min(to_go(i - 1, j) + 1, to_go(i, j - 1) + 1, to_go(i - 1, j - 1) + (first[i - 1] != second[j - 1]))

    return to_go(len(first), len(second))


@given(WORDS, WORDS)
def test_the_distance_is_that_of_its_definition(first, second):
    assert distance(first, second) == by_definition(first, second)


@given(WORDS, WORDS, WORDS)
def test_the_distance_is_a_metric_within_bounds(first, second, third):
    between = distance(first, second)
    assert (between == 0) == (first == second)
    assert between == distance(second, first)
    assert between <= distance(first, third) + distance(third, second)
    assert abs(len(first) - len(second)) <= between <= max(len(first), len(second))


@together("program", [p for p in programs() if p.graph], ids=lambda p: p.name, quick=30)
def test_a_rewriting_changes_some_tokens_and_an_unrolled_program_none(program):
    changed = share(program.plain, program.graph)
    assert (changed == 0) == (program.graph is program.plain)
    assert changed * len(tokens(program.plain)) <= max(len(tokens(program.plain)), len(tokens(program.graph)))
