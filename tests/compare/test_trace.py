"""Traces of lengths: what files hold, what is refused and where, what is counted, and samples that keep the spread."""

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.errors import CompareError, NothingMeasuredError
from compare.instruments import lengths, trace
from compare.instruments.lengths import STRATEGIES
from compare.records.cells import LengthsProbe
from compare.records.record import Failure, JobName
from compare.report.figures.lengths import sample_note
from tests.helpers.slow import examples


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


# Files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns", "lengths"),
    [
        ("5\n7\n9\n", (), [(5, 7, 9)]),
        ("length\n5\n7\n", (), [(5, 7)]),
        ("words\n5\n7\n", (), [(5, 7)]),
        ("id,Length \na,5\nb, 7\n\n", (), [(5, 7)]),
        ("\ufeff5\r\n\r\n7\r\n", (), [(5, 7)]),
        ("5.0\n1e3\n", (), [(5, 1000)]),
        ("words,count\n5,1\n7,2\n", ("count",), [(1, 2)]),
        ("words,count\n5,1\n7,2\n", ("1",), [(5, 7)]),
        ("5\t1\n7\t2\n", ("2",), [(1, 2)]),
        ('"a, b";source;target\n"x;y";5;1\nz;7;2\n', ("Source", "target"), [(5, 7), (1, 2)]),
        ("5|1\n7|2\n", ("2", "1"), [(1, 2), (5, 7)]),
    ],
)
def test_a_file_of_lengths(written, text, columns, lengths):
    assert list(trace.read(written(text), columns).columns) == lengths


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("", (), "mine.csv has 0 lengths"),
        ("\n \n", (), "has 0 lengths"),
        ("length\n5\n", (), "has 1 lengths"),
        ("5\n0\n7\n", (), r"mine.csv:2: '0' is no length; each row holds a whole number from 1 on"),
        ("5\n\n-1\n", (), r"mine.csv:3: '-1'"),
        ("length\n5\n6.5\n", (), r"mine.csv:3: '6.5'"),
        ("5\nnan\n", (), r"mine.csv:2: 'nan'"),
        ("NaN\n5\n6\n", (), r"mine.csv:1: 'NaN'"),
        ("5\ninf\n", (), r"mine.csv:2: 'inf'"),
        ("5\n1e99\n", (), r"mine.csv:2: '1e99'"),
        ("5\nfive\n", (), r"mine.csv:2: 'five'"),
        ("id,length\na,5\nb\n", (), "mine.csv:3: no cell in column 2"),
        ("id,words\na,5\n", (), r"mine.csv:1: 2 columns \(id, words\); say which by --column"),
        ("id,words\na,5\n", ("size",), "mine.csv:1: no column 'size'; there are id, words, or numbers from 1 to 2"),
        ("5\n6\n", ("2",), "no column '2'"),
    ],
)
def test_a_file_without_lengths_is_refused_by_its_line(written, text, columns, words):
    with pytest.raises(CompareError, match=words):
        trace.read(written(text), columns)


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(CompareError, match=r"cannot be read.*one length a line"):
        trace.read(tmp_path / "none.csv")


# Counts ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.integers(1, 5))
def test_graphs_that_are_kept_are_those_used_last(lengths, kept):
    held, misses = [], 0
    for length in lengths:
        if length in held:
            held.remove(length)
        else:
            misses += 1
        held = [*held, length][-kept:]
    laid = STRATEGIES["static, exact"].layout(lengths, 1)
    assert laid.compiles_of(kept) == misses
    assert laid.compiles_of(0) == len(set(lengths))


def test_two_axes_are_padded_each_and_counted_together():
    columns = (2, 4, 2), (3, 5, 3)
    found = {}
    for name, strategy in STRATEGIES.items():
        parts = [strategy.layout(column, 2) for column in columns]
        laid = lengths.combine_layouts(parts, columns, strategy.padding != "none")
        found[name] = laid.compiles, sum(laid.sizes)
    assert found["static, exact"] == (2, 6 + 20 + 6)
    assert found["static, powers of two"] == (2, 2 * 4 + 4 * 8 + 2 * 4)
    assert found["static, the maximum"] == (1, 3 * 20)
    assert found["static, padded batches"] == (1, 2 * 20 + 6)
    assert found["dynamic, batched on the fly"] == (0, 6 + 20 + 6)


# Samples --------------------------------------------------------------------------------------------------------

TRACES = st.lists(st.integers(1, 400), min_size=2, max_size=300)


@given(TRACES, st.integers(8, 60), st.integers(0, 3))
def test_a_sample_is_of_the_trace_and_the_same_for_the_same_seed(lengths, count, seed):
    found = trace.draw_sample(lengths, count, 12, seed)
    assert found == trace.draw_sample(lengths, count, 12, seed)
    assert set(found.lengths) <= set(lengths)
    assert 0 < len(found.lengths) <= count
    assert found.sizes <= 12
    assert (found.total, found.left_out) == (len(lengths), 0)


def test_a_sample_keeps_the_spread_and_how_often_lengths_come_again():
    lengths = [1 + (i * i) % 97 for i in range(970)]  # 49 different
    found = trace.draw_sample(lengths, 100, 20, 0)
    assert found.sizes == trace.LEAST_SIZES  # fewer would keep no spread
    assert fmean(found.lengths) == pytest.approx(fmean(lengths), rel=0.03)
    apart = trace.draw_sample(range(1, 1001), 100, 20, 0)
    assert (len(apart.lengths), apart.sizes, apart.hits) == (20, 20, 0.0)  # none comes again in the trace
    assert max(apart.lengths) > 950
    assert min(apart.lengths) < 50


def test_a_cap_leaves_the_longest_out_and_counts_them():
    found = trace.draw_sample(range(1, 101), 50, 10, 0, cap=60)
    assert max(found.lengths) <= 60
    assert (found.cap, found.left_out) == (60, 40)


# Time -----------------------------------------------------------------------------------------------------------


def test_paces_grow_with_the_square_beyond_what_was_probed():
    known = trace.paces(LengthsProbe([(2, 1.0, 0.1), (8, 16.0, 0.1)]))
    assert [known.compiling(n) for n in (1, 2, 4, 8, 16)] == pytest.approx([1.0, 1.0, 4.0, 16.0, 64.0])
    assert known.stepping(5) == pytest.approx(0.1)


def test_a_probe_that_measured_nothing_ends_the_command():
    with pytest.raises(NothingMeasuredError, match="no length could be probed: died"):
        trace.paces(Failure(JobName("lengths probe"), "died"))


@pytest.mark.slow
@examples(0.3)
@given(st.floats(1e-4, 10.0), st.floats(1e-5, 1.0))
def test_a_sample_fits_into_its_time_or_is_the_smallest(compile, step):
    known = trace.Paces((1, 100), (compile, compile * 50), (step, step * 10))
    lengths = list(range(1, 101)) * 3
    found = trace.fit_sample(lengths, known, 3, 40.0, 48, 0)
    least = trace.fit_sample(lengths, known, 3, 0.0, 48, 0)
    assert known.seconds(found.lengths, 3) <= 40.0 or found == least
    assert least.cap == 50


def test_what_is_not_timed_is_said_with_the_option_that_times_more():
    whole = trace.LengthTrace(("T",), ((2, 2, 3, 4, 90, 101),))
    every = trace.TraceSample((3, 2, 4, 2), 6, None, 0)
    timed, share, *rest = sample_note(every, whole, 7).splitlines()
    assert timed == "Timed: 4 of 6, 3 different lengths from 2 to 4, in an order by seed 7."
    assert share.endswith("The mean is 2.8, of the whole 33.7; 25.0% come again, of the whole 16.7%.")
    assert rest == []
    *same, left = sample_note(replace(every, cap=4, left_out=2), whole, 7).splitlines()
    assert same == [timed, share]
    assert left == "Not timed: 2 above 4 (33.3%), for which the workers' time is too short; --full gives more."
