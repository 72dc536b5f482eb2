"""Drawings: what a diagram holds, how a large one is folded, where things lie, and every format that is written."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
import zipfile
from itertools import combinations

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from dynamic.anomaly import forward_lines
from graphs import files as zips
from graphs.drawing import (
    Diagram,
    GraphDrawing,
    Item,
    Link,
    MappedBuffer,
    MemoryMap,
    beside,
    difference,
    layout,
    of_graph,
)
from graphs.drawing.groups import MOST, fold
from graphs.drawing.pictures import ends, label_with_sign
from graphs.errors import plain
from graphs.ops.control import scan

W, X = np.ones((3, 2), np.float32), np.ones((4, 3), np.float32)


def loss(w, x):
    return g.mean(g.tanh(x @ w) ** 2)


def rnn(w, xs):
    return g.sum(scan(lambda h, x: (g.tanh(h @ w + x), g.sum(h)), np.zeros(3), xs)[1])


def long(x):
    for _ in range(100):
        x = g.tanh(x)
        x = x * 1.5
    return g.sum(x)


def step():
    return of_graph(static.trace(static.value_and_grad(loss), W, X))


def by_label(diagram, label):
    return [item for item in diagram.items if item.label == label]


def test_a_value_with_its_gradient_has_a_forward_and_a_backward_pass():
    diagram = step()
    (tanh,) = by_label(diagram, "tanh")
    assert (tanh.kind, tanh.detail, tanh.saved) == ("forward", "f32[4,2]", 32)  # eight float32, which backward reads
    assert tanh.lines[0].startswith("test_drawing.py:")
    assert {item.kind for item in by_label(diagram, "matmul")} == {"forward", "backward"}
    assert [item.label for item in diagram.items if item.kind == "input"] == ["w", "x"]
    assert sum(item.is_result for item in diagram.items) == 2


def test_gradients_alone_have_a_backward_pass_too():
    diagram = of_graph(static.trace(static.grad(loss), W, X))
    assert {item.kind for item in by_label(diagram, "matmul")} == {"forward", "backward"}
    assert by_label(diagram, "tanh")[0].kind == "forward"


def test_passes_leave_the_backward_pass_told_apart():
    diagram = of_graph(static.compile(static.value_and_grad(loss), W, X).graph)
    assert {"forward", "backward"} <= {item.kind for item in diagram.items}
    assert [item.saved for item in by_label(diagram, "tanh")] == [32]


def test_a_run_of_the_dynamic_engine_has_a_backward_pass_with_the_forward_lines():
    diagram = of_graph(dynamic.record(dynamic.value_and_grad(loss), W, X))
    line = f"test_drawing.py:{loss.__code__.co_firstlineno + 1}"
    assert {item.lines for item in by_label(diagram, "matmul")} == {(line,)}
    assert {item.kind for item in by_label(diagram, "matmul")} == {"forward", "backward"}
    assert by_label(diagram, "tanh")[0].saved == 32


def test_the_gradient_of_a_loop_is_backward_in_its_body_too():
    diagram = of_graph(static.trace(static.value_and_grad(rnn), np.ones((3, 3)), np.ones((5, 3))))
    forward, backward = (
        {item.kind for item in diagram.items if item.box == box.key and item.kind in ("forward", "backward")}
        for box in diagram.boxes
    )
    assert forward == {"forward"}
    assert "backward" in backward


def test_two_values_are_no_backward_pass():
    diagram = of_graph(static.trace(lambda x: (g.sum(x), g.tanh(g.sum(x))), X))
    assert {item.kind for item in diagram.items} == {"input", "forward"}


def test_what_nothing_reads_is_no_backward_pass():
    def with_an_idle_sum(w, x):
        g.sum(w) > 0  # noqa: B015
        return loss(w, x)

    diagram = of_graph(dynamic.record(dynamic.value_and_grad(with_an_idle_sum), W, X))
    (idle,) = by_label(diagram, "greater")
    assert idle.kind == "forward"


def test_the_body_of_a_scan_stands_in_a_box():
    diagram = of_graph(static.trace(rnn, np.ones((3, 3)), np.ones((5, 3))))
    (box,) = diagram.boxes
    (node,) = by_label(diagram, "scan")
    assert box.title == f"body of scan {node.key}"
    assert [item.label for item in diagram.items if item.box == box.key and item.kind == "forward"] == [
        "matmul", "add", "tanh", "sum"
    ]  # fmt: skip
    assert [(link.source, link.target) for link in diagram.links if link.inside] == [(node.key, box.key)]
    found = layout.lay_out(diagram)
    outer = found.places[box.key]
    for item in diagram.items:
        place = found.places[item.key]
        inside = outer.x <= place.x and place.x + place.width <= outer.x + outer.width
        assert (inside and outer.y <= place.y <= outer.y + outer.height) == (item.box == box.key)


def test_a_large_graph_is_folded_to_its_repeated_blocks():
    diagram = of_graph(static.trace(static.value_and_grad(long), np.ones(3)))
    assert len(diagram.items) > MOST
    small = fold(diagram)
    assert len(small.items) < 20
    assert sum(item.count for item in small.items) == len(diagram.items)
    assert sum(item.saved for item in small.items) == sum(item.saved for item in diagram.items)
    forward = next(item for item in small.items if item.label == "100 × tanh, multiply")
    assert (forward.kind, forward.detail) == ("forward", "202 nodes: tanh, multiply")  # with x and 1.5
    assert len(GraphDrawing(diagram, unfold=True).shown.items) == len(diagram.items)
    assert fold(small) == small


@pytest.mark.slow
def test_a_hundred_thousand_nodes_are_folded_and_drawn():
    def very_long(x):
        for _ in range(50_000):
            x = g.tanh(x)
            x = g.sin(x)
        return x

    drawing = static.trace(very_long, np.ones(2)).draw()
    assert repr(drawing) == "GraphDrawing(very_long: 100,001 nodes in 1 items)"
    assert "50,000 × tanh, sin" in drawing.svg()


@pytest.mark.parametrize("place", [layout._by_grandalf, layout._by_depth])
def test_no_two_items_overlap_and_each_lies_below_what_it_reads(place):
    diagram = step()
    sizes = {item.key: layout.size_of(item) for item in diagram.items}
    links = [(link.source, link.target) for link in diagram.links]
    places, routes = place(sizes, links)
    assert places.keys() == sizes.keys()
    for one, other in combinations(places.values(), 2):
        apart = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y
    assert all(places[source].y + places[source].height <= places[target].y for source, target in links)
    assert routes.keys() <= set(links)


def test_the_places_of_graphviz_are_read(monkeypatch):
    class Done:
        stdout = (
            "graph 1 3 2\nnode n0 1 1.5 1 0.5 a\nnode n1 1 0.25 1 0.5 b\nedge n0 n1 4 1 1.2 1 1 1 0.8 1 0.6\nstop\n"
        )

    monkeypatch.setattr(layout.subprocess, "run", lambda *_, **__: Done)
    places, routes = layout._by_graphviz({"a": (72.0, 36.0), "b": (72.0, 36.0)}, [("a", "b")])
    assert places["a"] == (36.0, 18.0, 72.0, 36.0)
    assert places["b"].y == 108.0
    assert list(routes) == [("a", "b")]


def test_the_picture_is_xml_that_names_every_item():
    drawing = GraphDrawing(step())
    root = ET.fromstring(drawing.svg())
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(drawing.whole.items)
    assert any("tanh" in title and "saved 32 B" in title and "test_drawing.py" in title for title in titles)
    assert root.attrib["role"] == "img"
    assert drawing._repr_html_() == drawing.svg()
    page = drawing.html().replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in page  # it needs no network
    assert "https:" not in page


def test_every_format_is_written(tmp_path):
    drawing = static.trace(rnn, np.ones((3, 3)), np.ones((5, 3))).draw()
    for name in ("a.svg", "a.html", "a.dot", "a.mmd", "a.json", "a.model-explorer.json", "a.png", "a.pdf"):
        assert drawing.save(tmp_path / name).stat().st_size > 200
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert json.loads((tmp_path / "a.json").read_text())["title"] == "rnn"
    (graph,) = json.loads((tmp_path / "a.model-explorer.json").read_text())["graphs"]
    inside = [node for node in graph["nodes"] if node["namespace"] == "body of scan %3"]
    assert "tanh" in [node["label"] for node in inside]
    ids = {node["id"] for node in graph["nodes"]}
    assert all(edge["sourceNodeId"] in ids for node in graph["nodes"] for edge in node["incomingEdges"])
    dot = (tmp_path / "a.dot").read_text()
    assert dot.count("{") == dot.count("}") == 2
    assert "subgraph b0" in (tmp_path / "a.mmd").read_text()
    with pytest.raises(ValueError, match=r"a drawing is not written as \.txt; use \.svg, "):
        drawing.save(tmp_path / "a.txt")


def test_a_difference_tells_what_was_added_and_removed():
    before, after = (of_graph(static.trace(f, X)) for f in (lambda x: g.sum(g.tanh(x)), lambda x: g.sum(g.sin(x))))
    found = [(item.label, item.change) for item in difference(before, after).items]
    assert found == [("x", None), ("sin", "added"), ("tanh", "removed"), ("sum", "rewritten")]
    same = difference(before, before)
    assert {item.change for item in same.items} == {None}
    assert len(same.items) == len(before.items)


def test_a_tape_shows_what_each_node_saves(tmp_path):
    w = dynamic.tensor(W, requires_grad=True)
    tape = dynamic.tape_of(loss(w, X))
    drawing = tape.draw(tmp_path / "tape.svg")
    assert (tmp_path / "tape.svg").read_text(encoding="utf-8") == drawing.svg() == tape._repr_html_()
    labels = {item.label: item for item in drawing.whole.items}
    assert labels["tanh"].saved == 32
    assert labels["leaf"].kind == "input"
    assert [item.label for item in drawing.whole.items if item.is_result] == ["mean"]


def test_a_tape_knows_the_lines_of_a_block_that_notes_them():
    with forward_lines() as lines:
        result = loss(dynamic.tensor(W, requires_grad=True), X)
    tape = dynamic.tape_of(result, lines)
    items = tape.draw().whole.items
    line = f"test_drawing.py:{loss.__code__.co_firstlineno + 1}"
    assert {item.lines for item in items if item.kind == "forward"} == {(line,)}
    assert {item.lines for item in dynamic.tape_of(result).draw().whole.items} == {()}
    assert sum(item.saved for item in items) == tape.stats.saved_bytes > 0


def test_an_executable_shows_its_graph_its_memory_and_its_passes():
    exe = static.compile(static.value_and_grad(loss), W, X)
    assert exe._repr_html_() == exe.graph.draw().svg()
    found = exe.draw_memory()
    assert found.peak == exe.plan.peak
    assert all(one.offset + one.size <= found.peak and one.lower < one.upper for one in found.buffers)
    assert "32 B at 0" in found.svg()
    assert exe.report()._repr_html_().count("<td>remove_dead_code</td>") == 1
    assert str(exe.report()).count("  remove_dead_code: ") == 1


def test_a_buffer_that_is_written_again_names_all_that_lie_in_it():
    exe = static.compile(lambda w, x: g.mean(g.exp(g.tanh(x @ w))), W, X, passes=())
    assert any(
        one.name.startswith("matmul") and ", then tanh" in one.name and ", then exp" in one.name
        for one in exe.draw_memory().buffers
    )


def test_generated_code_says_op_shape_and_line_of_each_statement():
    exe = static.compile(loss, W, X)
    statements = exe.source.splitlines()[1:-1]
    assert len(statements) == len([row for row in statements if "  # " in row])
    for node in exe.nodes():
        if node.op.name in ("matmul", "tanh"):
            assert any(row.endswith(f"# {node.op.name} {node.spec} {node.source}") for row in statements)


def test_a_map_of_memory_places_a_buffer_by_its_life_and_offset(tmp_path):
    found = MemoryMap("m", [MappedBuffer("tanh f32[4]", 0, 2, 512, 512), MappedBuffer("sum f32[]", 1, 4, 512, 0)], 1024)
    ET.fromstring(found.svg())
    assert "tanh f32[4]: 512 B at 512, steps 0 to 1" in found.svg()
    assert found.save(tmp_path / "m.html").read_text().startswith("<!doctype html>")
    assert repr(found) == "MemoryMap(m: 2 buffers, 1,024 bytes)"
    with pytest.raises(ValueError, match=r"not written as \.png; use \.svg or \.html"):
        found.save(tmp_path / "m.png")


HOSTILE = 'a\r\n  false\x1b]0;t\x07\x9b\u202e\u2028\ud800\ufffe\x00"]<b>'


def texts(name, path):
    """What is shown of graphs that bear a name of the user's wherever one can stand: a function, an input, a line."""
    x = np.ones(3, np.float32)

    def f(x):
        return g.sum(g.tanh(x) * 2)

    f.__name__ = name
    builder = static.GraphBuilder(name)
    fed = builder.compile(g.tanh(builder.placeholder(name, (3,))) * builder.placeholder("y", (3,)))
    exe = static.compile(lambda feed: f(feed[name]), {name: x})
    static.compile(f, x).save(path)
    with zipfile.ZipFile(path) as saved:
        members = {each: saved.read(each) for each in saved.namelist() if each != "digest.txt"}
    document = json.loads(members["graph.json"])
    for node in document["nodes"]:
        node |= {"source": name, "attrs": {**node["attrs"], **({"name": name} if node["op"] == "input" else {})}}
    arrays = [zips.array_of(members[name]) for name in sorted(members) if name.startswith("arrays/")]
    zips.write(path, json.dumps(document).encode(), arrays)
    graph = static.trace(f, x)
    for each in (fed, exe, static.load(path)):
        yield from (repr(each), str(each.graph), each.source, each.report()._repr_html_(), str(each.report()))
        yield from (each.draw_memory().svg(), each.draw_memory().html())
    for drawing in (graph.draw(), static.load(path).graph.draw()):
        yield from (drawing.svg(), drawing.html(), drawing.dot(), drawing.mermaid(), drawing.json(), repr(drawing))
    for call in (
        lambda: fed({}),
        lambda: exe({name: x[:2]}),
        lambda: static.load(path)(x, x),
        lambda: static.load(path)(x > 0),
    ):
        with pytest.raises(g.GraphError) as caught:
            call()
        yield str(caught.value)
    yield repr(builder)
    yield str(g.GraphError(name))


def test_a_name_of_a_users_begins_no_line_and_holds_nothing_that_is_obeyed(tmp_path):
    for hostile in texts(HOSTILE, tmp_path / "graph"):
        assert hostile == plain(hostile)
        assert not re.search(r"^\s*false", hostile, re.MULTILINE)


def chain(count):
    sizes = {f"%{i}": (60.0, 40.0) for i in range(count)}
    return sizes, [(f"%{i}", f"%{i + 1}") for i in range(count - 1)]


def test_a_loop_of_folded_lines_has_an_arrow_upwards_beside_the_one_downwards():
    items = tuple(Item(key, key, "", "forward") for key in ("a", "b"))
    diagram = Diagram("loop", items, (Link("a", "b"), Link("b", "a")))
    places = layout.lay_out(diagram).places
    down, up = ends(places["a"], places["b"], ()), ends(places["b"], places["a"], ())
    assert down[0][1] < down[1][1]
    assert up[0][1] > up[1][1]
    assert up[0][0] > down[0][0]


def test_a_long_link_keeps_clear_of_what_is_high():
    diagram = of_graph(static.trace(static.value_and_grad(rnn), np.ones((3, 3)), np.ones((5, 3))))
    found = layout.lay_out(diagram)
    boxes = [found.places[box.key] for box in diagram.boxes]
    inner = {item.key for item in diagram.items if item.box}
    points = [point for (source, _), route in found.routes.items() if source not in inner for point in route]
    assert points
    for x, y in points:
        assert not any(b.x < x < b.x + b.width and b.y < y < b.y + b.height for b in boxes)


def test_links_that_pass_a_layer_take_no_room_of_a_node_each():
    sizes, links = chain(12)
    wide = dict.fromkeys(sizes, (200.0, 40.0))
    past = [("%0", f"%{i}") for i in range(2, 12)]
    places, routes = layout._by_grandalf(wide, [*links, *past])
    xs = [x for points in routes.values() for x, _ in points] + [place.x for place in places.values()]
    assert max(xs) - min(xs) < len(past) * 200 / 2
    for (source, target), points in routes.items():
        assert len(points) <= 4, (source, target)  # down, across, down, across, down


def test_inputs_stand_just_above_what_reads_them():
    sizes, links = chain(5)
    places, _ = layout._by_grandalf({"late": (60.0, 40.0), **sizes}, [*links, ("late", "%4")])
    assert places["late"].y == places["%3"].y


@pytest.mark.slow
def test_two_thousand_nodes_are_laid_out_in_layers():
    sizes, links = chain(2000)
    places, _ = layout._by_grandalf(sizes, links)
    assert [places[f"%{i}"].y for i in range(2000)] == sorted(place.y for place in places.values())


def test_backward_added_and_removed_have_a_sign_beside_their_colour():
    texts = [label_with_sign(Item("%0", "mul", "", kind)) for kind in ("forward", "backward", "added", "removed")]
    assert texts == ["mul", "∇ mul", "+ mul", "− mul"]
    assert GraphDrawing(step()).svg().count("<polygon") == 1 + sum(item.kind == "backward" for item in step().items)


def test_a_tape_stands_beside_the_traced_graph():
    tape = dynamic.tape_of(loss(dynamic.tensor(W, requires_grad=True), X)).draw().whole
    traced = of_graph(static.trace(rnn, np.ones((3, 3)), np.ones((5, 3))))
    both = beside(tape, traced)
    assert [box.title for box in both.boxes] == ["tape of f32[]", "rnn", "body of scan %3"]
    assert [box.around for box in both.boxes] == ["", "", "1:"]
    assert len(both.items) == len(tape.items) + len(traced.items)
    assert len({item.key for item in both.items}) == len(both.items)
    places = layout.lay_out(both).places
    one, other = places["0:"], places["1:"]
    assert one.x + one.width <= other.x
    ET.fromstring(GraphDrawing(both).svg())


def test_on_a_phone_the_picture_scrolls_and_not_the_page():
    page = MemoryMap("loss", [], 0).html()
    assert "main{overflow-x:auto}" in page
    assert '<main tabindex="0" aria-label="loss">' in page


def test_a_picture_is_the_same_each_time():
    diagram = of_graph(static.trace(static.value_and_grad(rnn), np.ones((3, 3)), np.ones((5, 3))))
    assert len({GraphDrawing(diagram).svg() for _ in range(8)}) == 1


def test_a_link_leaves_a_layer_before_it_bends():
    sizes = {"low": (60.0, 40.0), "high": (60.0, 400.0), "next": (60.0, 40.0)}
    places, routes = layout._by_grandalf(sizes, [("low", "next"), ("high", "next")])
    bottom = places["high"].y + 400.0
    assert routes["low", "next"] == [(pytest.approx(places["low"].centre), pytest.approx(bottom))]
    assert routes["high", "next"] == []


def test_a_constant_is_written_as_short_as_it_is():
    diagram = of_graph(static.trace(lambda x: x * 0.1, X))
    assert [item.label for item in diagram.items if item.kind == "constant"] == ["0.1"]


def test_a_sum_of_cotangents_is_of_the_line_whose_gradient_came_last():
    def loss(w, x):
        hidden = g.tanh(x @ w)
        return g.mean(hidden * hidden + g.sum(w))

    line = loss.__code__.co_firstlineno + 1
    graph = dynamic.record(dynamic.value_and_grad(loss), np.ones((3, 2)), np.ones((4, 3)))
    sums = [node for node in graph.nodes if node.op.name == "add"]
    assert [(node.is_backward, node.source.rpartition(":")[2]) for node in sums] == [
        (False, str(line + 1)),  # the user's own
        (True, str(line + 1)),  # of the two factors of the square
        (True, str(line)),  # of both uses of w
    ]
