"""Saved graphs: they run without their function, and no file that was cut, altered or forged runs at all."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
import static
from graphs import TensorSpec
from graphs.errors import ArtifactError, GraphError
from graphs.files import digest
from static.call import artifact

ROOT = Path(__file__).resolve().parents[2]
OFFSETS = np.arange(12.0).reshape(3, 4)


def loss(p: Any, x: Any, power: int) -> Any:
    hidden = graphs.tanh(x @ p["w"][0] + OFFSETS)
    return (hidden[:, ::2] ** power).sum()


P = {"w": (np.linspace(-1, 1, 8).reshape(2, 4),)}
X = np.linspace(0, 1, 6).reshape(3, 2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "model.graph"
    static.compile(static.value_and_grad(loss), P, X, 3).save(path)
    return path


class Pair(NamedTuple):
    left: Any
    right: Any


# Round trips --------------------------------------------------------------------------------------------------


def assert_same(one: Any, other: Any) -> None:
    (left, structure), (right, expected) = graphs.tree.flatten(one), graphs.tree.flatten(other)
    assert structure == expected
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_loaded_graph_is_the_same_graph_and_gives_the_same_bits(saved):
    exe, loaded = static.compile(static.value_and_grad(loss), P, X, 3), static.load(saved)
    assert_same(loaded(P, X, 3), exe(P, X, 3))
    assert graphs.isomorphic(loaded.graph, exe.graph)
    assert str(loaded.graph) == str(exe.graph)  # the user's lines as well
    assert loaded.plan == exe.plan
    assert "test_artifact.py" in str(loaded.graph)


def test_values_and_layout_are_still_checked(saved):
    loaded = static.load(str(saved))
    with pytest.raises(GraphError, match="static value 3, got 2"):
        loaded(P, X, 2)
    with pytest.raises(GraphError, match="laid out"):
        loaded({"w": [P["w"][0]]}, X, 3)


def test_symbolic_graphs_stay_symbolic(tmp_path):
    def f(x: Any) -> Any:
        rows, columns = x.shape
        return x.reshape(rows * columns)[: rows * columns], x.sum() / rows, graphs.arange(columns // 2 + rows % 3)

    exe = static.compile(f, TensorSpec(("B", "T"), "float64"))
    exe.save(tmp_path / "symbolic.graph")
    loaded = static.load(tmp_path / "symbolic.graph")
    for shape in ((2, 3), (1, 1), (4, 5)):
        assert_same(loaded(np.ones(shape)), exe(np.ones(shape)))


def test_saved_again_it_is_the_same_file(saved, tmp_path):
    static.load(saved).save(tmp_path / "again.graph")
    with zipfile.ZipFile(saved) as one, zipfile.ZipFile(tmp_path / "again.graph") as other:
        assert {n: one.read(n) for n in one.namelist()} == {n: other.read(n) for n in other.namelist()}


RUN = """
import sys, numpy as np, static
w, x = np.load(sys.argv[2]), np.load(sys.argv[3])
value, gradient = static.load(sys.argv[1])({"w": (w,)}, x, 3)
assert not {"tests", "dynamic"} & set(sys.modules)
np.save(sys.argv[4], gradient["w"][0])
print(repr(value.item()))
"""


def test_it_runs_in_a_process_without_the_function(saved, tmp_path):
    files = [tmp_path / name for name in ("w.npy", "x.npy", "gradient.npy")]
    np.save(files[0], P["w"][0])
    np.save(files[1], X)
    command = [sys.executable, "-W", "error", "-c", RUN, str(saved), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    value, gradient = static.compile(static.value_and_grad(loss), P, X, 3)(P, X, 3)
    assert float(done.stdout) == value
    np.testing.assert_array_equal(np.load(files[2]), gradient["w"][0])


# What is in a file --------------------------------------------------------------------------------------------


def test_a_file_holds_json_arrays_and_a_digest_and_no_pickle(saved):
    with zipfile.ZipFile(saved) as archive:
        names = set(archive.namelist())
        assert {"graph.json", "digest.txt"} <= names
        assert all(n in {"graph.json", "digest.txt"} or n.startswith("arrays/") for n in names)
        for name in names - {"graph.json", "digest.txt"}:
            np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
        document = json.loads(archive.read("graph.json"))
    assert document["version"] == artifact.VERSION
    assert "pickle" not in json.dumps(document)


def test_nothing_but_the_file_is_left_and_a_failed_save_leaves_the_old_one(tmp_path):
    path = tmp_path / "m.graph"
    static.compile(lambda x: x * 2, X).save(path)
    before = path.read_bytes()
    with pytest.raises(ArtifactError, match="a value of type complex cannot be saved"):
        static.compile(lambda x, c: x, X, 1j).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.graph"]


def test_containers_of_the_users_own_classes_are_refused(tmp_path):
    exe = static.compile(lambda x: Pair(x, x), X)
    with pytest.raises(ArtifactError, match="Pair"):
        exe.save(tmp_path / "m.graph")


def test_an_executable_is_saved_and_never_pickled(saved):
    for pickled in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ArtifactError, match="use save"):
            pickled(static.load(saved))


def test_a_file_that_cannot_be_read_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        static.load(tmp_path / "none.graph")
    with pytest.raises(IsADirectoryError):
        static.load(tmp_path)


# Damage -------------------------------------------------------------------------------------------------------


def load_bytes(folder: Path, data: bytes) -> Any:
    path = folder / "other.graph"
    path.write_bytes(data)
    return static.load(path)


@pytest.mark.parametrize("data", [b"", b"PK", b"graph f() -> f32[]", b"\x80\x04K\x01.", bytes(1000)])
def test_foreign_files_are_refused(tmp_path, data):
    with pytest.raises(ArtifactError, match=r"other\.graph"):
        load_bytes(tmp_path, data)


def test_files_cut_off_anywhere_are_refused(saved, tmp_path):
    data = saved.read_bytes()
    for length in range(0, len(data), 7):
        with pytest.raises(ArtifactError):
            load_bytes(tmp_path, data[:length])


def test_a_file_with_any_byte_altered_is_refused_or_means_the_same(saved, tmp_path):
    data, expected = saved.read_bytes(), static.load(saved)(P, X, 3)
    for position in range(0, len(data), 3):
        altered = bytearray(data)
        altered[position] ^= 0x55
        try:
            loaded = load_bytes(tmp_path, bytes(altered))
        except ArtifactError:
            continue
        assert_same(loaded(P, X, 3), expected)  # a date, or another field of the zip that means nothing here


def forged(saved: Path, document: Any = None, arrays: dict[str, bytes] | None = None) -> bytes:
    """The file with another document or other arrays, and a digest that fits."""
    with zipfile.ZipFile(saved) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name != "digest.txt"}
    files |= arrays or {}
    if document is not None:
        files["graph.json"] = document if isinstance(document, bytes) else json.dumps(document).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("digest.txt", digest(files))
    return buffer.getvalue()


def document_of(saved: Path) -> Any:
    with zipfile.ZipFile(saved) as archive:
        return json.loads(archive.read("graph.json"))


def test_a_forgery_that_changes_nothing_loads(saved, tmp_path):
    assert_same(load_bytes(tmp_path, forged(saved, document_of(saved)))(P, X, 3), static.load(saved)(P, X, 3))


def test_another_version_says_so(saved, tmp_path):
    document = document_of(saved) | {"version": 99}
    with pytest.raises(ArtifactError, match="version 99, this release reads 1; save it again"):
        load_bytes(tmp_path, forged(saved, document))


@pytest.mark.parametrize(
    "document", [b"", b"{", b"[]", b"null", b"{}", b'{"format": "graphduel.graph"}', b"[" * 200_000]
)
def test_documents_that_are_no_graph_are_refused(saved, tmp_path, document):
    with pytest.raises(ArtifactError):
        load_bytes(tmp_path, forged(saved, document))


def test_a_pickled_array_is_refused(saved, tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ArtifactError, match="pickle"):
        load_bytes(tmp_path, forged(saved, arrays={"arrays/0.npy": buffer.getvalue()}))


@pytest.mark.parametrize("key", ["axes=print('run') or (1, 0), y", "lambda", "", "axes\n"])
def test_attribute_names_are_never_code(saved, tmp_path, key, capsys):
    document = document_of(saved)
    node = next(n for n in document["nodes"] if n["op"] == "permute_dims")
    node["attrs"] = {key: node["attrs"]["axes"]}
    with pytest.raises(ArtifactError):
        load_bytes(tmp_path, forged(saved, document))
    assert capsys.readouterr().out == ""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


JUNK = [None, -1, 0, 1, True, 10**30, 1e300, "x", [], {}, {"array": 0}, {"array": 99}, {"tuple": [1]}, {"dim": []},
        {"atom": ["T"]}, {"dtype": ["O"]}, {"dtype": ["f8"]}, {"slice": [1, 2]}, {"spec": [10**15, {"dtype": ["f8"]}]},
        {"print": ["x"]}]  # fmt: skip


@given(st.data())
def test_a_forged_document_is_refused_or_fails_as_a_graph_does(tmp_path_factory, saved, data):
    document = copy.deepcopy(document_of(saved))
    place = data.draw(st.sampled_from(sorted(places(document), key=repr)))
    target = document
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = data.draw(st.sampled_from(JUNK))
    folder = tmp_path_factory.mktemp("forged")
    try:
        loaded = load_bytes(folder, forged(saved, document))
    except ArtifactError:
        return
    try:
        loaded(P, X, 3)
    except (GraphError, ValueError):
        return
