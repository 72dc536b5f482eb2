"""Groups of a graph: repeated blocks, functions and lines, which closed never read each other in a circle."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape

import networkx as nx
import numpy as np
import pytest

import graphs as g
import static
from graphs.drawing import Diagram, GraphDrawing, Item, Link, difference, of_graph
from graphs.drawing.groups import LEVEL, ItemGroup, fold, group_items, groups_of, keys_of, open_groups
from graphs.ops.control import scan
from tests.helpers.deep import deep, layer

HOSTILE = "</script><img src=x onerror=alert(1)><!--{{data}}{{script}}"


def loops(w, xs):
    return g.sum(scan(lambda h, x: (g.tanh(h @ w + x), g.sum(h)), np.zeros(3), xs)[1])


def many(x):
    """A level of more parts than a group may have, none like another."""
    for size in range(1, 2 * LEVEL):
        x = g.concat([x, np.zeros(size)])
    return x


WEIGHTS = [np.ones((3, 3))] * 6
DIAGRAMS = {
    "layers": of_graph(static.trace(static.value_and_grad(deep), WEIGHTS, np.ones((2, 3)))),
    "optimised": of_graph(static.compile(static.value_and_grad(deep), WEIGHTS, np.ones((2, 3))).graph),
    "loops": of_graph(static.trace(static.value_and_grad(loops), np.ones((3, 3)), np.ones((5, 3)))),
    "many": of_graph(static.trace(many, np.ones(2))),
}
each = pytest.mark.parametrize("diagram", DIAGRAMS.values(), ids=DIAGRAMS)


def titles(parts):
    return [part.title for part in parts if isinstance(part, ItemGroup)]


@each
def test_each_item_is_in_one_group_and_no_group_is_large(diagram):
    parts = group_items(diagram)
    assert sorted(key for part in parts for key in keys_of(part)) == sorted(item.key for item in diagram.items)
    groups = [inner for part in parts if isinstance(part, ItemGroup) for inner in groups_of(part)]
    assert all(len(held) <= LEVEL for held in (parts, *(group.parts for group in groups)))
    assert len({group.key for group in groups}) == len(groups)
    assert all(group.count == len(list(keys_of(group))) for group in groups)


@each
@pytest.mark.parametrize("most", [3, 8, 20, 60])
def test_closed_groups_never_read_each_other_in_a_circle(diagram, most):
    small = fold(diagram, most)
    assert sum(item.count for item in small.items) == len(diagram.items)
    links = [(link.source, link.target) for link in small.links if not link.inside]
    assert nx.is_directed_acyclic_graph(nx.DiGraph(links))


def test_layers_of_a_python_loop_are_one_group_of_alike_groups():
    forward, backward = [
        part for part in group_items(DIAGRAMS["layers"]) if isinstance(part, ItemGroup) and part.title.endswith("layer")
    ]
    assert (forward.title, backward.title) == ("layer", "∇ layer")
    line = layer.__code__.co_firstlineno
    (repeated,) = forward.parts
    assert repeated.title == f"6 × deep.py:{line + 1}, deep.py:{line + 2}"
    assert [part.title.partition(":")[0] for part in repeated.parts] == [f"{number} of 6" for number in range(1, 7)]
    assert len({part.count for part in repeated.parts[1:]}) == 1  # the first has the input x as well


def test_a_body_of_control_flow_is_a_group_beside_its_node():
    diagram = DIAGRAMS["loops"]
    groups = {inner.key for part in group_items(diagram) if isinstance(part, ItemGroup) for inner in groups_of(part)}
    assert {box.key for box in diagram.boxes} <= groups


def test_groups_open_together_and_as_far_as_there_is_room():
    parts = group_items(DIAGRAMS["layers"])
    assert open_groups(parts, 0) == set()
    every = {inner.key for part in parts if isinstance(part, ItemGroup) for inner in groups_of(part)}
    assert open_groups(parts, 10**6) == every


def test_lines_say_what_is_written_in_them_and_in_which_function():
    code = DIAGRAMS["layers"].code
    line = f"deep.py:{layer.__code__.co_firstlineno + 1}"
    assert code[line] == ("layer", "hidden = g.tanh(h @ w)")


def test_a_page_runs_its_own_script_alone_and_shows_hostile_text_as_text():
    items = (
        Item("%0", HOSTILE, HOSTILE, "input", (HOSTILE,)),
        Item("%1", HOSTILE, "f32[]", "forward", options=HOSTILE),
    )
    page = GraphDrawing(Diagram(HOSTILE, items, (Link("%0", "%1"),))).html()
    assert len(re.findall(r"<script", page)) == 2
    assert "<img" not in page
    assert "<!--" not in page
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    (stage,) = json.loads(data)["stages"]
    assert [item["label"] for item in stage["items"]] == [HOSTILE] * 2
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in page
    assert unescape(re.search("<title>(.*?)</title>", page, re.DOTALL)[1]) == HOSTILE


def test_a_node_removed_in_the_middle_leaves_the_others_what_they_are():
    def with_one_more(x, extra):
        h = g.tanh(x) * 2.0
        return g.sum(g.exp(g.sin(h) if extra else h))

    before, after = (of_graph(static.trace(lambda x, e=e: with_one_more(x, e), np.ones(3))) for e in (True, False))
    changed = {item.label: item.change for item in difference(before, after).items if item.change}
    assert changed == {"sin": "removed", "exp": "rewritten"}
