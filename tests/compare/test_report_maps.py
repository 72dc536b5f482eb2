"""The figures of the crossover map and of the strategies: what they show, and what they do without data."""

import pytest
from matplotlib import rc_context

from compare import report
from compare.errors import ResultsError
from compare.instruments.crossover import figure as crossover
from compare.instruments.lengths import figure as strategies
from compare.report.plots import style
from compare.report.summary import summarise
from tests.helpers.claim_records import BASE, grid, grid_memory, lengths, strategy
from tests.helpers.records import typed

PLACES = {("matmul", 1, 16): 3.0, ("matmul", 1, 4096): 1.0, ("matmul", 8, 16): 12.0, ("matmul", 8, 4096): 0.5}
BYTES = {("matmul", 1, 16): 4.0, ("matmul", 1, 4096): 0.5, ("matmul", 8, 16): 1.0, ("matmul", 8, 4096): 1.0}


def summary(*records):
    return summarise(typed([{"schema": 1, **record} for record in records]))


def texts(figure):
    return [word.get_text() for axes in figure.axes for word in axes.texts]


@pytest.fixture(autouse=True)
def styled():
    with rc_context(style.STYLE):
        yield


def test_a_cell_says_its_ratio_and_when_static_pays_back():
    drawing = crossover.draw(summary(*grid(PLACES, build=100.5 * BASE, noise=1e-9), *grid_memory(BYTES)))
    told = texts(drawing.figure)
    assert {"3×\n51 runs", "1×\ntie", "0.5×\nnever"} <= set(told)
    assert {"0.25×", "2×", "1×"} <= set(told)  # bytes, too, as dynamic / static
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes[:2]] == [
        "time, matmul: dynamic ÷ static",
        "bytes, matmul: dynamic ÷ static",
    ]
    assert drawing.table.rows[0][:3] == ("matmul", "1", "16")
    assert "the extremes are time, matmul, depth 8, 4,096 floats: 0.5×" in drawing.alt


def test_the_line_runs_where_static_stops_leading():
    drawing = crossover.draw(summary(*grid(PLACES)))
    (axes, _) = drawing.figure.axes  # and the scale
    lines = {tuple(map(tuple, line.get_xydata().tolist())) for line in axes.lines}
    assert lines == {((0.5, -0.5), (0.5, 0.5)), ((0.5, 0.5), (0.5, 1.5))}  # between 16 and 4,096 at both depths


def test_strategies_stand_beside_plain_dynamic():
    arms = {
        "dynamic": {"seconds": BASE},
        "static, exact": {"seconds": BASE / 2, "compiles": 6},
        "static, padded batches": {
            "seconds": BASE / 8,
            "batching": "padded",
            "examples": 3,
            "calls": 2,
            "computed": 150,
        },
    }
    drawing = strategies.draw(summary(*lengths(arms), *lengths(arms, model="encoder_text")))
    assert len(drawing.figure.axes) == 2
    assert texts(drawing.figure)[:3] == ["1 · 1.00", "6 · 1.00", "1 · 1.50"]
    assert "fastest is static, padded batches" in drawing.alt
    assert len(drawing.table.rows) == 6
    assert {len(row) for row in drawing.table.rows} == {len(drawing.table.headers)} == {len(drawing.table.align)}
    exact = dict(zip(drawing.table.headers, drawing.table.rows[1], strict=True))
    assert (exact["strategy"], exact["compiles"], exact["hits"]) == ("static, exact", "6", "83.3%")
    assert (exact["an example"], exact["p99"]) == ("50 µs", "50 µs")


@pytest.mark.parametrize("figure", [crossover, strategies])
def test_without_data_a_figure_says_so(figure):
    drawing = figure.draw(summary())
    assert drawing.figure is None
    assert "whole suite" in drawing.caption


def test_a_line_that_breaks_its_type_is_refused():
    broken = {**lengths({"dynamic": {"seconds": BASE}})[0], "arms": {"dynamic": {**strategy(BASE), "compiles": "many"}}}
    with pytest.raises(ResultsError, match=r"Expected `int`, got `str` - at `\$.arms\[...\].compiles`"):
        typed(broken)
    with pytest.raises(ResultsError, match=r"Expected `array`, got `str` - at `\$.cells`"):
        typed({**grid(PLACES)[0], "cells": "none"})


def test_the_page_holds_both_figures(tmp_path):
    records = [*grid(PLACES), *lengths({"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE}})]
    written = {path.name for path in report.write(tmp_path, typed(records), [])}
    assert {"crossover.png", "crossover.svg", "strategies.png", "strategies.svg"} <= written
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "![Crossover: tensor size and depth](plots/crossover.png)" in page
