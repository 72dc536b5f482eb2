"""The graph of a user's function in both engines, side by side in its report; the textbook branch is not there."""

import re
from dataclasses import replace

import numpy as np
import pytest

import compare
import graphs as g
from compare.instruments import inspection
from compare.records import results
from compare.records.job import Job
from compare.records.own import EngineGraphs
from compare.records.record import records_of
from compare.report import function
from compare.report.blocks import Inline
from compare.report.figures import parity
from compare.report.summary import summarise
from compare.subjects.case import case_of
from tests.helpers import own_functions as own
from tests.helpers.own_functions import QUICK

JOB = Job("parity", "f", "given")


def unrolled(w, x):
    h = g.zeros(3, dtype=np.float32)
    for row in x:
        h = g.tanh(row @ w + h)
    return g.mean(h)


def look(f, calls):
    return inspection.engine_graphs(JOB, case_of(f, calls, None, None))


def labels(diagram):
    return {item.label for item in diagram.items}


@pytest.fixture(scope="module")
def found():
    return compare.compare(own.loss, own.inputs, **QUICK, apart=True)


def test_both_graphs_hold_the_step_with_its_backward_pass():
    record = look(own.loss, own.inputs)
    assert list(record.graphs) == ["dynamic", "static"]
    for diagram in record.graphs.values():
        assert {"matmul", "tanh", "mean"} <= labels(diagram)
        assert {"forward", "backward"} <= {item.kind for item in diagram.items}
    assert record.nodes == {engine: len(diagram.items) for engine, diagram in record.graphs.items()}


def test_what_the_passes_changed_is_marked_in_both():
    record = look(own.loss, own.inputs)
    assert "removed" in {item.change for item in record.graphs["dynamic"].items}
    assert {"added", "rewritten"} & {item.change for item in record.graphs["static"].items}


def test_large_graphs_are_folded_and_their_nodes_are_counted():
    record = look(unrolled, [(np.eye(3, dtype=np.float32), np.ones((40, 3), np.float32))])
    for engine, diagram in record.graphs.items():
        assert len(diagram.items) <= inspection.MOST < record.nodes[engine]


def test_control_flow_is_converted_for_static():
    record = look(own.branch, own.inputs)
    assert "switch" in labels(record.graphs["static"])
    assert "switch" not in labels(record.graphs["dynamic"])


def test_what_static_refuses_has_no_graphs():
    assert look(lambda x: g.sum(x) * len(str(x.tolist())), [(np.ones(2, np.float32),)]) is None
    assert function.graph_section([]) is None


def test_the_record_is_read_again_as_it_was_written():
    record = look(own.branch, own.inputs)
    assert results.parse_line(results.encode(record)) == record


@pytest.mark.slow
def test_the_page_has_one_picture_for_a_desktop_and_two_for_a_phone(found):
    section = function.graph_section(found.records)
    (picture,) = (block for block in section.blocks if isinstance(block, Inline))
    assert re.findall(r'<div class="(wide|narrow)"', picture.svg) == ["wide", "narrow", "narrow"]
    assert len(set(re.findall(r'<marker id="([^"]+)"', picture.svg))) == 3
    assert "dynamic: the tape of one run" in picture.svg
    nodes = records_of(found.records, EngineGraphs)[0].nodes
    assert section.blocks[0] == (
        f"Here dynamic records {nodes['dynamic']} nodes on every run, static runs a graph of {nodes['static']} nodes."
    )


def test_labels_of_a_graph_add_no_markup():
    record = look(own.loss, own.inputs)
    item = replace(record.graphs["static"].items[0], label="<script>")
    record.graphs["static"] = replace(record.graphs["static"], items=(item, *record.graphs["static"].items[1:]))
    (picture,) = (block for block in function.graph_section([record]).blocks if isinstance(block, Inline))
    assert "<script>" not in picture.svg
    assert "&lt;script&gt;" in picture.svg


@pytest.mark.slow
def test_the_textbook_branch_is_in_no_report_of_ones_own(found, tmp_path):
    assert parity.draw_parity(summarise(found.records)) is None
    assert parity.draw_parity(summarise([])).name == "graphs"
    page = found.save(tmp_path / "out").read_text()
    assert "The graph in both engines" in page
    assert "textbook" not in page
    assert not (tmp_path / "out" / "plots" / "graphs.svg").exists()


@pytest.mark.slow
def test_graphs_are_drawn_for_a_report_alone():
    assert records_of(compare.compare(own.loss, own.inputs, **QUICK).records, EngineGraphs) == []
