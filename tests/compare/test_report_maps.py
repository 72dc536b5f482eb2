"""The figures of the crossover map and of the strategies: what they show, and what they do without data."""

import html
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context

from compare import report
from compare.claims import judge
from compare.claims import regimes as crossover_claim
from compare.claims.regimes import Course, MapPlace
from compare.cli.command import graphduel
from compare.errors import ResultsError
from compare.report import assemble, printers, verdicts
from compare.report import summary as model
from compare.report.figures import DrawnPlots, maps, style
from compare.report.figures import lengths as strategies
from compare.report.summary import summarise
from compare.stats import Interval
from tests.helpers.claim_records import BASE, grid, grid_memory, lengths, strategy
from tests.helpers.records import typed

PLACES = {("matmul", 1, 16): 3.0, ("matmul", 1, 4096): 1.0, ("matmul", 8, 16): 12.0, ("matmul", 8, 4096): 0.5}
START = {"kind": "run", "run": "r", "at": "2030-01-02", "settings": {"preset": "full", "seed": 0}}
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
    drawing = maps.draw_crossover(summary(*grid(PLACES, build=100.5 * BASE, noise=1e-9), *grid_memory(BYTES)))
    told = texts(drawing.figure)
    assert {"0.333×\n51 runs", "1×\ntie", "2×\nnever"} <= set(told)
    assert {"4×", "0.5×", "1×"} <= set(told)  # bytes, too, as static ÷ dynamic
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes[:2]] == [
        "time, matmul: static ÷ dynamic",
        "bytes, matmul: static ÷ dynamic",
    ]
    assert drawing.table.rows[0][:3] == ("matmul", "1", "16")
    assert (
        "the extremes are time, matmul, depth 8, 16 floats: 0.0833×; time, matmul, depth 8, 4,096 floats: 2×"
        in drawing.alt
    )


def test_the_page_advises_by_the_map_and_no_further_than_it_reaches():
    records = summary(*grid(PLACES, build=100.5 * BASE, noise=1e-9))
    said = list(verdicts.advice(records.places))
    assert said[0].startswith("Compile a step that runs more than 51 times for each shape of its inputs")
    assert "if its arrays are tiny: once compiled, it is" in said[0]
    assert said[1] == "If the step runs 10,000 times, compiling pays with up to 196 shapes."
    assert said[2].startswith("With larger arrays the op decides: at 16 KiB static ÷ dynamic is ")
    assert list(verdicts.advice(())) == []


def test_the_figure_of_the_answer_is_above_zero_once_static_has_paid_back():
    place = summary(*grid(PLACES, build=100.5 * BASE, noise=1e-9)).places[0]
    runs = np.array([1.0, 50.0, 51.0, 1e6])
    share = maps.time_saved(place, runs, 1)
    assert (share > 0).tolist() == [False, place.pays_after <= 50, True, True]
    assert maps.pays(place, 1) == str(place.pays_after)
    assert share[-1] == pytest.approx(1 - place.steady.estimate, abs=1e-3)


def test_a_model_finds_the_line_that_its_places_were_made_from():
    lines = ((8e-6, 1e-6, 1e-9), (2e-6, 3e-7, 5e-10))

    def place(depth, elements):
        dynamic, static = (Course(0, (1e-6,), a + depth * (b + c * elements)) for a, b, c in lines)
        ratio = static.steady / dynamic.steady
        built = Course(1e-3 + 2e-4 * depth, static.head, static.steady)
        return crossover_claim.CostPlace(
            MapPlace("add", depth, elements), dynamic, built, Interval(ratio, ratio, ratio)
        )

    (found,) = model.fit_cost_models([place(depth, elements) for depth in (1, 8, 64) for elements in (16, 2048)])
    assert found.dynamic == pytest.approx(lines[0])
    assert found.static == pytest.approx(lines[1])
    assert found.build == pytest.approx((1e-3, 2e-4))
    assert found.error == pytest.approx(1.0)
    assert model.fit_cost_models([place(1, 16)]) == []


def test_the_line_runs_where_static_stops_leading():
    drawing = maps.draw_crossover(summary(*grid(PLACES)))
    (axes, _) = drawing.figure.axes  # and the scale
    lines = {tuple(map(tuple, line.get_xydata().tolist())) for line in axes.lines}
    assert lines == {((0.5, -0.5), (0.5, 0.5)), ((0.5, 0.5), (0.5, 1.5))}  # between 16 and 4,096 at both depths


def test_strategies_stand_beside_plain_dynamic():
    modes = {
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
    drawing = strategies.draw_lengths(summary(*lengths(modes), *lengths(modes, model="encoder_text")))
    assert len(drawing.figure.axes) == 2
    assert texts(drawing.figure)[:3] == ["1 · 1.00", "6 · 1.00", "1 · 1.50"]
    assert "fastest is static, padded batches" in drawing.alt
    assert len(drawing.table.rows) == 6
    assert {len(row) for row in drawing.table.rows} == {len(drawing.table.headers)} == {len(drawing.table.align)}
    exact = dict(zip(drawing.table.headers, drawing.table.rows[1], strict=True))
    assert (exact["strategy"], exact["compiles"], exact["hits"]) == ("static, exact", "6", "83.3%")
    assert (exact["an example"], exact["p99"]) == ("50 µs", "50 µs")


@pytest.mark.parametrize("draw", [maps.draw_crossover, strategies.draw_lengths])
def test_without_data_a_figure_says_so(draw):
    drawing = draw(summary())
    assert drawing.figure is None
    assert "whole suite" in drawing.caption


def test_a_line_that_breaks_its_type_is_refused():
    broken = {**lengths({"dynamic": {"seconds": BASE}})[0], "arms": {"dynamic": {**strategy(BASE), "compiles": "many"}}}
    with pytest.raises(ResultsError, match=r"Expected `int`, got `str` - at `\$.arms\[...\].compiles`"):
        typed(broken)
    with pytest.raises(ResultsError, match=r"Expected `array`, got `str` - at `\$.cells`"):
        typed({**grid(PLACES)[0], "cells": "none"})


@pytest.mark.slow
def test_the_page_holds_both_figures(tmp_path, undrawn):
    records = [*grid(PLACES), *lengths({"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE}})]
    written = {path.name for path in report.write(tmp_path, typed(records), [])}
    assert {"crossover.png", "crossover.svg", "strategies.png", "strategies.svg"} <= written
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "![Crossover: tensor size and depth](plots/crossover.png)" in page


def test_the_first_screen_has_at_most_120_words_before_the_claims_and_none_that_is_ours_alone():
    """The title, the conditions in a word, the contents, and the answer; what is folded is not on the screen."""
    found = summary(START, *grid(PLACES, build=100.5 * BASE, noise=1e-9))
    page = assemble.page("mine", found, judge(found.records), DrawnPlots({}, (), []))
    top = printers.to_html(page).partition("<body>")[2].partition('<table class="verdicts')[0]
    top = re.sub(r"</summary>.*?</details>", "", top, flags=re.DOTALL)
    words = re.sub(r"<[^>]*>", " ", top).split()
    assert 40 < len(words) <= 120
    assert not {"arm", "arms", "cell", "cells", "regime", "regimes", "control", "tape"} & {w.lower() for w in words}


@pytest.mark.parametrize(
    ("settings", "command", "quick"),
    [
        ({"preset": "full", "seed": 0}, "graphduel run --full --out reports/mine-again", False),
        ({"preset": "quick", "only": "t*"}, "graphduel run --quick --only 't*' --out reports/mine-again", True),
        ({"preset": "models", "frameworks": ["torch"]}, "graphduel run --suite models --out reports/mine-again", True),
    ],
)
def test_the_page_has_the_command_that_repeats_its_run_and_the_command_line_takes_it(settings, command, quick):
    found = summary({**START, "settings": settings})
    page = assemble.page("mine", found, [], DrawnPlots({}, (), []))
    assert command in html.unescape(printers.to_html(page))
    assert f"    {command}\n    graphduel report reports/mine\n" in printers.to_markdown(page)
    name, *words = shlex.split(command)[1:]
    with graphduel.commands[name].make_context(name, words) as given:
        assert given.params["quick"] is quick
        assert given.params["out"] == Path("reports/mine-again")
