"""The figure of every sample of a function of the user's: a row for each process and mode."""

import re

import pytest

from compare.report.figures import costs, style
from compare.report.summary import summarise
from tests.helpers.claim_records import cell
from tests.helpers.records import typed

RUN = {"kind": "run", "run": "r", "at": "2030-01-01T00:00:00+00:00", "settings": {"preset": "own"}}
MODES = {"dynamic": {"seconds": 2e-3}, "static-exact": {"seconds": 1e-3}}


@pytest.fixture
def summary():
    return summarise(typed([RUN, *cell("loss", MODES, processes=3)]))


def test_a_row_for_each_process_and_mode_with_all_its_blocks(summary):
    drawing = costs.draw_steady(summary)
    rows = drawing.table.rows
    assert [row[:2] for row in rows] == [(str(p), mode) for p in (1, 2, 3) for mode in ("dynamic", "static-exact")]
    blocks = [len(record.modes["dynamic"].blocks) for record in summary.records[1:] if hasattr(record, "process")]
    assert [int(row[2]) for row in rows[::2]] == blocks
    (axes,) = drawing.figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == [
        "process 1, dynamic",
        "process 1, static-exact",
    ]
    ticks, dots = axes.lines[::2], axes.lines[1::2]
    assert [len(line.get_xdata()) for line in ticks[::2]] == [3 * count for count in blocks]
    assert dots[0].get_xdata()[0] > dots[1].get_xdata()[0]


def test_each_dot_says_its_values_in_the_file(summary):
    said = re.findall("<title>([^<]*)</title>", style.render(costs.draw_steady(summary).figure, "svg").decode())
    assert len(said) == 6
    assert all(re.fullmatch(r"process \d, [a-z-]+: .* in \d+ blocks?\)", words) for words in said)


def test_a_page_has_the_samples_or_the_ratios_and_not_both(summary):
    suite = summarise(list(summary.records[1:]))
    assert (costs.draw_steady(suite).name, costs.draw_steady(summary).name) == ("steady", "samples")
    assert costs.draw_steady(suite).figure is not None


def test_colours_go_by_the_place_of_a_mode_in_its_engine():
    assert style.colour("eager") == style.colour("dynamic") == style.colour("torch-eager")
    assert style.colour("compile") == style.colour("static-exact")
    assert style.colour("nobody's") not in {style.colour("eager"), style.colour("compile")}
    assert style.ordered_modes(["nobody's", "compile", "eager"]) == ["eager", "compile", "nobody's"]
