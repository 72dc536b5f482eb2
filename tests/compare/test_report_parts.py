"""The parts of the report that can be checked by hand: numbers as text, break-even points, drawings of graphs."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from compare import text
from compare.claims.base import Effect, Finding, Regime
from compare.claims.regimes import Course, break_even
from compare.records.record import Cell
from compare.report import verdicts
from compare.report.blocks import Page, Section
from compare.report.figures import costs, parity, style
from compare.report.figures.parity import layer_graph
from compare.report.printers import to_markdown
from compare.report.summary import largest
from compare.stats import Interval


def test_modes_that_no_engine_has_get_looks_of_their_own_in_a_run():
    with style.of_modes(["eager", "compile", "Block", "model"]):
        looks = [(style.colour(mode), style.marker(mode)) for mode in ("eager", "compile", "Block", "model")]
        assert style.colour("eager") == looks[0][0]
    assert len(set(looks)) == 4
    assert style.colour("Block") == style.colour("model")


@pytest.mark.parametrize(("low", "high"), [(1.6e-3, 2.4e-3), (0.99, 1.04), (1e-5, 3.0), (0.4, 17.0)])
def test_an_axis_has_several_ticks_whose_labels_do_not_touch(low, high):
    axes = style.figure(2.0).add_subplot()
    style.log_axis(axes, low, high, 0.13, text.seconds)
    ticks = axes.get_xticks()
    assert 3 <= len(ticks) <= 9
    assert len({text.seconds(tick) for tick in ticks}) == len(ticks)


def test_the_front_holds_the_modes_beside_which_none_is_less_in_both():
    spent = [costs._Cost(call, (), first) for call, first in ((4, 16), (5, 3), (6, 9), (4, 20), (9, 0.1))]
    assert costs._front(spent) == [(4, 16), (5, 3), (9, 0.1)]


def ratio_of(low, estimate, high):
    return Interval(estimate, low, high)


def test_break_even_by_hand():
    static, dynamic = Course(10.0, (2.0,), 1.0), Course(0.0, (2.0,), 2.0)
    point = break_even(static, dynamic, ratio_of(0.4, 0.5, 0.6))
    # behind by 10 after the first run, and each run after it gains 1
    assert (point.verdict, point.runs) == ("after", 11.0)
    assert (point.low, point.high) == pytest.approx((1 + 10 / 1.2, 1 + 10 / 0.8))
    assert break_even(static, dynamic, ratio_of(0.9, 1.0, 1.1)).verdict == "cannot tell"
    assert break_even(static, dynamic, ratio_of(1.1, 1.2, 1.3)).verdict == "never"
    assert break_even(Course(0, (1.0,), 1.0), dynamic, ratio_of(0.4, 0.5, 0.6)).verdict == "at once"


def test_a_break_even_has_no_interval_where_that_would_tell_nothing():
    static, dynamic = Course(1.0, (0.1,), 0.9), Course(0.0, (1.0,), 1.0)
    near = break_even(static, dynamic, ratio_of(0.5, 0.9, 0.999_999))
    assert (near.verdict, near.low, near.high) == ("after", None, None)
    assert near.runs == pytest.approx(break_even(static, dynamic, ratio_of(0.8, 0.9, 0.95)).runs)


def test_break_even_inside_the_first_epoch_counts_calls():
    static, dynamic = Course(0.0, (5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), 1.0), Course(0.0, (2.0,) * 7, 2.0)
    # 5 against 2, 6/4, 7/6, 8/8: no longer behind from the fourth call on
    assert break_even(static, dynamic, ratio_of(0.4, 0.5, 0.6)).runs == 4.0


def test_a_course_adds_build_early_calls_and_steady_calls():
    total = Course(10.0, (3.0, 2.0), 1.0).total
    assert [float(total(np.array([runs]))[0]) for runs in (0.0, 1.0, 2.0, 5.0)] == [
        10.0,
        13.0,
        15.0,
        18.0,
    ]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (text.number(0.41249), "0.412"),
        (text.number(41249), "41,200"),
        (text.number(float("nan")), "n/a"),
        (text.seconds(61.3e-6), "61.3 µs"),
        (text.seconds(0.0), "0"),
        (text.seconds(0.9996), "1 s"),
        (text.seconds(0.9994), "999 ms"),
        (text.size(1536), "1.5 KiB"),
        (text.size(5 << 30), "5 GiB"),
        (text.quantity(0.97, "share"), "97%"),
        (text.quantity(3, "steps"), "3 steps"),
        (text.interval(0.99951, 0.99959), "[0.9995, 0.9996]"),
        (text.join_words(["a", "b", "c"]), "a, b and c"),
        (text.join_words([]), ""),
    ],
)
def test_numbers_read_well(shown, expected):
    assert shown == expected


def small_graph(spec="f32[3]"):
    graph = nx.DiGraph()
    ops = {"x": "input", "two": "constant 2", "zero": "constant 0", "sum": "sum", "test": "greater",
           "twice": "multiply", "less": "subtract", "out": "where"}  # fmt: skip
    for node, op in ops.items():
        graph.add_node(node, op=op, spec=spec)
    edges = ["x sum 0", "sum test 0", "zero test 1", "x twice 0", "two twice 1", "x less 0", "two less 1"]
    for edge in (*edges, "test out 0", "twice out 1", "less out 2"):
        tail, head, position = edge.split()
        graph.add_edge(tail, head, positions=(int(position),))
    return graph


def test_a_layered_drawing_runs_downwards_and_overlaps_nowhere():
    graph = small_graph()
    layout = layer_graph(graph)
    assert len(set(layout.nodes.values())) == len(graph)
    for (tail, head), points in layout.edges.items():
        assert (points[0], points[-1]) == (layout.nodes[tail], layout.nodes[head])
        assert all(below[1] - above[1] == 1 for above, below in pairwise(points))
        assert not set(points[1:-1]) & set(layout.nodes.values())


def test_the_two_graphs_say_whether_they_are_isomorphic():
    renamed = nx.relabel_nodes(small_graph(), {"x": "other"})
    same = parity.drawing({"dynamic": small_graph(), "static": renamed})
    assert "are isomorphic" in same.caption
    assert style.render(same.figure, "svg").startswith(b"<?xml")
    assert "not isomorphic" in parity.drawing({"a": small_graph(), "b": small_graph("f64[3]")}).caption


def test_both_engines_draw_the_same_textbook_graph():
    drawn = parity.engine_graphs()
    assert len(drawn) == 2
    assert "are isomorphic" in parity.drawing(drawn).caption
    for graph in drawn.values():
        named = {data.get("name", data["op"]) for _, data in graph.nodes(data=True)}
        assert named == {"input", "sum", "greater", "multiply", "subtract", "where", "constant 0.0", "constant 2.0"}


def test_a_figure_with_room_for_one_size_shows_the_largest():
    cells = [Cell("b", "small"), Cell("a", "large"), Cell("b", "medium"), Cell("a", "small"), Cell("c", "odd")]
    assert largest(cells) == [Cell("b", "medium"), Cell("a", "large"), Cell("c", "odd")]


def test_names_in_figures_are_short_single_ascii_lines():
    assert style.clean("a\nb\u202e\u6f22$") == "a?b??$"
    assert style.clean("x" * 50, 10) == "x" * 9 + "\u2026"


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("rnn_text took 1.25x [1.1, 1.4]", "rnn_text took 1.25x [1.1, 1.4]"),
        ("1. no list", r"1\. no list"),
        ("## no heading", r"#\# no heading"),
        ("- no item", r"\- no item"),
        ("--- no rule", r"\--- no rule"),
        ("a | b * c ` d", r"a \| b \* c \` d"),
        ("[a](b) <c> &amp;", r"[a\](b) &lt;c&gt; &amp;amp;"),
        ("_a_ and a_b", r"\_a\_ and a_b"),
        ("see https://x.y and www.z", "see https&#58;//x.y and www&#46;z"),
    ],
)
def test_text_stays_text_in_markdown(said, printed):
    page = Page("t", "s", (Section("u", (said,)), Section("v")))
    assert f"\n\n{printed}\n\n" in to_markdown(page)


def test_the_strongest_of_both_sides_is_told_with_its_value_or_without_one():
    regimes = [Regime("tiny (small)", "supported", 2.5, Interval(2.5, 2.0, 3.0)), Regime("a fact", "refuted")]
    finding = Finding("depends", (), Effect("seconds, static ÷ dynamic", 2.5, "ratio"), None, tuple(regimes))
    assert [words for _, words in verdicts._strongest(finding, "ratio")] == ["tiny (small): 2.5× [2, 3]", "a fact"]
    assert [words for _, words in verdicts._strongest(Finding("depends", ()), "ratio")] == [
        "in no regime that was measured"
    ] * 2


def test_where_a_claim_is_that_dynamic_is_slower_the_smallest_ratio_is_the_strongest():
    regimes = (Regime("slow", "supported", 0.25, Interval(0.25, 0.2, 0.5)), Regime("less", "supported", 0.5))
    finding = Finding("supported", (), Effect("seconds, static ÷ dynamic", 0.25, "ratio"), None, regimes, "below")
    assert next(words for _, words in verdicts._strongest(finding, "ratio")) == "slow: 0.25× [0.2, 0.5]"
