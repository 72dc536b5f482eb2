"""Saved graphs that would take more than they may, or that no call fits: refused before anything is made of them."""

from __future__ import annotations

import io
import json
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphs
import static
from graphs import TensorSpec
from graphs import files as zips
from graphs.errors import ArtifactError
from tests.fuzz import artifacts, strangers
from tests.fuzz.artifacts import members
from tests.helpers.together import check_each

MIB = 1 << 20


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> bytes:
    path = tmp_path_factory.mktemp("graphs") / "model.graph"
    static.compile(lambda p, x: (graphs.tanh(x @ p["w"] + ONES), x), {"w": np.ones((2, 3))}, np.ones((4, 2))).save(path)
    return path.read_bytes()


ONES = np.full(3, 1.5)
PLACE = "arrays/0.npy"


def load(folder: Path, data: bytes) -> Any:
    (folder / "other.graph").write_bytes(data)
    return static.load(folder / "other.graph")


def sealed(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these with a digest that fits."""
    rest = {name: data for name, data in files.items() if name != "digest.txt"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as zipped:
        for name, data in {**rest, "digest.txt": zips.digest(rest).encode()}.items():
            zipped.writestr(name, data)
    return buffer.getvalue()


def changed(saved: bytes, change: Any) -> bytes:
    """The file with a document that `change` has changed."""
    files = members(saved)
    document = json.loads(files["graph.json"])
    change(document)
    return sealed(files | {"graph.json": json.dumps(document).encode()})


def refused(folder: Path, data: bytes, match: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactError, match=match):
            load(folder, data)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(data) + 4 * MIB
    finally:
        tracemalloc.stop()


# Bombs --------------------------------------------------------------------------------------------------------------


def test_a_bomb_is_refused_before_it_is_inflated(saved, tmp_path):
    bomb = sealed(members(saved) | {PLACE: bytes(40 * MIB)})
    assert len(bomb) < MIB
    refused(tmp_path, bomb, r"other\.graph: .* bytes would inflate to 41,")


def test_many_members_of_the_same_bytes_count_each(saved, tmp_path):
    files = members(saved) | {f"arrays/{i}.npy": bytes(MIB) for i in range(32)}
    refused(tmp_path, sealed(files), "would inflate to 33,")


@pytest.mark.parametrize("declared", [0, 10, 100_000])
def test_a_member_that_lies_about_its_size_is_refused(saved, tmp_path, declared):
    data = bytearray(sealed(members(saved) | {PLACE: bytes(8 * MIB)}))
    at = data.rindex(PLACE.encode()) - 46  # its head in the central directory
    assert data[at : at + 4] == b"PK\1\2"
    assert int.from_bytes(data[at + 24 : at + 28], "little") == 8 * MIB
    data[at + 24 : at + 28] = declared.to_bytes(4, "little")
    refused(tmp_path, bytes(data), r"other\.graph")


def test_what_compresses_too_well_is_stored_as_it_is(tmp_path):
    zeros = np.zeros(3 * MIB)
    exe = static.compile(lambda x: x + zeros[0] * x + graphs.sum(graphs.asarray(zeros) * x[0]), np.ones(2), passes=())
    exe.save(tmp_path / "m.graph")
    assert (tmp_path / "m.graph").stat().st_size > zeros.nbytes
    np.testing.assert_array_equal(static.load(tmp_path / "m.graph")(np.ones(2)), exe(np.ones(2)))


def npy(header: str, body: bytes = b"", version: int = 1) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2, "little") + text + body


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", bytes(24)), "in 24 bytes"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }", bytes(24)), "in 24 bytes"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", bytes(24)), "in 24 bytes"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", bytes(24)), "pickle"),
        (npy("{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", bytes(48)), "no number"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,", bytes(24)), "damaged"),
        (npy("", bytes(24), version=3), "version"),
        (b"PK\3\4" + bytes(100), "magic"),
        (b"PK\5\6" + bytes(18), "magic"),
        (b"", "magic|EOF"),
    ],
)
def test_arrays_that_are_none_are_refused(saved, tmp_path, data, match):
    refused(tmp_path, sealed(members(saved) | {PLACE: data}), rf"other\.graph: .*{match}")


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(3, dtype=">f4"), np.zeros((0, 3)), np.ones(())]
)
def test_arrays_come_back(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    found = zips.array_of(buffer.getvalue())
    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative
    assert found.flags.writeable
    assert found.flags.owndata


@pytest.mark.parametrize("name", ["graph.json", "arrays/00.npy", "arrays/-1.npy", "../x", "setup.py"])
def test_strange_members_and_doubled_ones_are_refused(saved, tmp_path, name):
    buffer = io.BytesIO(saved)
    with zipfile.ZipFile(buffer, "a") as zipped, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a name is there twice is what is tested
        zipped.writestr(name, b"x")
    refused(tmp_path, buffer.getvalue(), "it holds")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(saved, tmp_path, compression):
    refused(tmp_path, sealed(members(saved), compression), "compressed in another way")


# Documents ----------------------------------------------------------------------------------------------------------


def constant(document: Any) -> Any:
    return next(node for node in document["nodes"] if node["op"] == "constant")


LAYOUTS = {
    "fewer results": lambda d: d.update(results={"tuple": [0]}),
    "more results": lambda d: d.update(results={"tuple": [0, 1, 2]}),
    "results in another order": lambda d: d.update(results={"tuple": [1, 0]}),
    "results that are no numbers": lambda d: d.update(results={"tuple": ["a", "b"]}),
    "results that are arrays": lambda d: d.update(results={"tuple": [{"array": 0}, 1]}),
    "fewer arguments": lambda d: d.update(arguments={"tuple": [0]}),
    "arguments in no tuple": lambda d: d.update(arguments={"list": [0, 1]}),
    "one argument": lambda d: d.update(arguments=0),
    "fewer static values": lambda d: d.update(static=[None]),
    "a static value for an array": lambda d: d.update(static=[None, 3]),
    "an array as a static value": lambda d: d.update(static=[None, {"array": 0}]),
    "a list as a static value": lambda d: d.update(static=[None, {"list": [None]}]),
    "fewer outputs": lambda d: d["outputs"].pop(),
    "more outputs": lambda d: d["outputs"].append(0),
    "an input left out": lambda d: d["inputs"].pop(),
    "inputs twice": lambda d: d.update(inputs=[0, 0]),
    "an input without a name": lambda d: d["nodes"][0]["attrs"].update(name=3),
    "a constant that is a number": lambda d: constant(d)["attrs"].update(value=3),
    "a node before it is there": lambda d: d["nodes"][-1].update(inputs=[len(d["nodes"])]),
    "a node counted from the end": lambda d: d["nodes"][-1].update(inputs=[-1]),
    "a node that is a bool": lambda d: d["nodes"][-1].update(inputs=[True]),
    "an input too large for any machine": lambda d: d["nodes"][0]["attrs"].update(
        spec={"spec": [10**12, 2, {"dtype": ["float64"]}]}
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_document_that_no_call_fits_is_refused(saved, tmp_path, name):
    refused(tmp_path, changed(saved, LAYOUTS[name]), r"other\.graph: ")


def test_a_group_over_more_than_any_machine_holds_is_refused(tmp_path):
    """Its blocks alone would fill the memory."""
    path = tmp_path / "m.graph"
    static.compile(lambda x: graphs.tanh(x) * 0.5 + x, TensorSpec((1 << 12, 1 << 10), "float32")).save(path)
    text = members(path.read_bytes())["graph.json"]
    assert b'"fused"' in text
    data = sealed(members(path.read_bytes()) | {"graph.json": text.replace(b"4096", b"4096000000000")})
    refused(tmp_path, data, "no array is that large")


def test_a_call_with_an_attribute_that_no_array_holds_is_an_error_of_ours(saved, tmp_path):
    """A layout that fits, and a graph that does not run: placed like every error of a kernel."""
    path = tmp_path / "m.graph"
    static.compile(lambda x: graphs.pad(x, 1), np.ones(4), passes=()).save(path)
    data = changed(path.read_bytes(), lambda d: d["nodes"][-1]["attrs"].update(value=10**400))
    loaded = load(tmp_path, data)
    with pytest.raises(graphs.errors.GraphError, match="pad: OverflowError"):
        loaded(np.ones(4))


# Options that no call leads to: the function, and what the last node with these options has in their place.
OPTIONS = [
    (lambda x: graphs.sum(x, axis=0), {"axis": {"tuple": [2]}}),
    (lambda x: graphs.sum(x, axis=0), {"axis": {"tuple": [-1]}}),
    (lambda x: graphs.sum(x, axis=0), {"keepdims": 2}),
    (graphs.permute_dims, {"axes": {"tuple": [0, 0]}}),
    (graphs.softmax, {"axis": {"tuple": [5]}}),
    (lambda x: graphs.concat([x, x]), {"axis": 2}),
    (lambda x: x[1:], {"key": {"tuple": [{"slice": [1, None, None]}]}}),
    (lambda x: x[1], {"key": {"tuple": [4, {"slice": [None, None, None]}]}}),
    (lambda x: graphs.place(x, (6, 3), (slice(0, 4), slice(0, 3))), {"shape": {"tuple": [5, 2]}}),
    (lambda x: graphs.place(x, (6, 3), (slice(0, 4), slice(0, 3))), {"key": {"tuple": [0, 1]}}),
    (lambda x: graphs.take(x, np.arange(2)), {"axis": 7}),
    (lambda x: graphs.add_along_axis(x, np.zeros((4, 3), int), (9, 3), 0), {"shape": {"tuple": [9, 4]}}),
    (lambda x: graphs.add_along_axis(x, np.zeros((4, 3), int), (9, 3), 0), {"axis": 1}),
    (lambda x: graphs.max_pool1d(x[None], 2), {"window": {"tuple": [{"tuple": [2, 0, 0, 0, 1]}]}}),
    (lambda x: graphs.max_pool1d(x[None], 2), {"window": {"tuple": [{"tuple": [2, 2, -5, 9, 1]}]}}),
    (lambda x: graphs.conv1d(x[None], np.ones((2, 4, 2))), {"window": {"tuple": [{"tuple": [3, 1, 0, 0, 1]}]}}),
    (lambda x: graphs.conv1d(x[None], np.ones((2, 4, 2))), {"groups": 2}),
    (lambda x: graphs.scan(lambda c, r: (c + r, c), x[0], x), {"length": 5}),
    (lambda x: graphs.scan(lambda c, r: (c + r, c), x[0], x), {"xs": 0}),
    (lambda x: graphs.flat_index(*[graphs.astype(x, int)] * 2, sizes=(4, 3)), {"sizes": {"tuple": [4]}}),
    (lambda x: graphs.pad(x, 1), {"pad_width": {"tuple": [{"tuple": [1, -1]}, {"tuple": [1, 1]}]}}),
]


@pytest.mark.filterwarnings("ignore:NumPy's kernels run instead")
@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_options_that_no_call_leads_to_are_refused(tmp_path, backend):
    path = tmp_path / "m.graph"

    def check(case):
        function, options = case
        static.compile(function, np.ones((4, 3)), passes=()).save(path)

        def change(document):
            node = next(node for node in reversed(document["nodes"]) if node["attrs"].keys() >= options.keys())
            node["attrs"].update(options)

        path.write_bytes(changed(path.read_bytes(), change))
        with pytest.raises(ArtifactError, match=r"m\.graph: damaged"):
            static.load(path, backend=backend)

    check_each(OPTIONS, check, lambda case: str(case[1]))


def test_a_group_is_one_that_a_pass_makes(tmp_path):
    """Of sizes that are not known NumPy's kernels take rows block by block: a body may not hold what needs them all."""
    path = tmp_path / "m.graph"
    exe = static.compile(lambda x: graphs.tanh(x) * 2 + graphs.exp(x), TensorSpec(("B", 4), "float64"))
    exe.save(path)
    saved, (group,) = path.read_bytes(), [node for node in exe.graph.nodes if node.op.name == "fused"]
    assert np.array_equal(static.load(path)(np.ones((3, 4))), exe(np.ones((3, 4))))

    def body(document):
        return next(node for node in document["nodes"] if node["op"] == "fused")["attrs"]

    def sort(document):
        node = next(node for node in body(document)["body"]["graph"]["nodes"] if node["op"] == "tanh")
        node |= {"op": "sort", "attrs": {"axis": 0, "descending": False, "stable": True}}

    def double(document):
        document["nodes"].append(next(node for node in document["nodes"] if node["op"] == "result"))
        document["outputs"].append(len(document["nodes"]) - 1)

    def widen(document):
        body(document)["space"] = {"tuple": [8, 4]}

    assert group.attrs["space"]
    for change, what in ((sort, "not computed in blocks"), (double, "there twice"), (widen, "not computed in blocks")):
        refused(tmp_path, changed(saved, change), what)


# At random ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_graphs_that_a_stranger_has_altered_are_refused_or_agree(tmp_path, capsys):
    """A slice of `python -m tests.fuzz.strangers --count 20000`."""
    pytest.importorskip("llvmlite", reason="native code needs llvmlite")
    found = strangers.run(range(250), seed=5, folder=tmp_path)
    assert not found["wrong"], capsys.readouterr().out
    assert found["refused"] > 100
    assert found["ran"] > 40


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_load_or_are_refused(tmp_path):
    """A slice of `python -m tests.fuzz.artifacts --count 100000`."""
    found = artifacts.fuzz(600, seed=3, folder=tmp_path)
    for way in artifacts.WAYS:
        assert found[f"{way}: refused"] > 15
    assert found["document: ran"] > 8
    assert found.total() == 600
