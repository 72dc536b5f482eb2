"""Saved graphs and tensors, damaged at random: `python -m tests.fuzz.artifacts --count 100000`.

Bytes are flipped, cut and swapped, members of the zip renamed, doubled and exchanged, and the document changed as JSON
with a digest that fits, so that what reads it is reached. Each file must load or be refused with an ArtifactError, and
what loads must run or fail as a GraphError, in bounded memory and time.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import resource
import signal
import tempfile
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np

import dynamic
import graphs as g
import static
from graphs.errors import ArtifactError, GraphError
from graphs.files import digest
from graphs.op import registered_ops

Files = dict[str, bytes]
Place = tuple[Any, ...]

# Graphs to damage ---------------------------------------------------------------------------------------------------

OFFSETS = np.arange(12.0).reshape(3, 4)


def dense(p: Any, x: Any, power: int) -> Any:
    hidden = g.tanh(x @ p["w"][0] + OFFSETS)
    return g.sum(hidden[:, ::2] ** power)


def symbolic(x: Any) -> Any:
    rows, columns = x.shape
    whole = g.reshape(x, (rows * columns,))
    return {"flat": whole[:columns], "mean": g.sum(x) / rows, "at": g.arange(columns // 2 + rows % 3)}


def controlled(x: Any, n: Any) -> Any:
    total = g.scan(lambda c, a: (c * 0.5 + a, g.sin(c)), g.zeros(3), x)
    chosen = g.cond(n > 0, lambda: g.sum(x), lambda: g.max(x))
    return total, chosen, g.while_loop(lambda i: i < n, lambda i: i + 1, g.asarray(0))


def blocks(x: Any) -> Any:
    y = g.tanh(x) * 0.5 + x
    return g.softmax(y, axis=-1), g.sum(y * y)


def examples(folder: Path) -> list[bytes]:
    """The bytes of a few saved graphs (constants, gradients, symbolic sizes, control flow, groups), and of tensors."""
    made = [
        static.compile(static.value_and_grad(dense), {"w": (np.ones((2, 4)),)}, np.ones((3, 2)), 3),
        static.compile(symbolic, g.TensorSpec(("B", "T"), "float64")),
        static.compile(static.value_and_grad(lambda x: g.sum(controlled(x, np.asarray(2))[0][0])), np.ones((4, 3))),
        static.compile(controlled, np.ones((4, 3)), np.asarray(2)),
        static.compile(blocks, g.TensorSpec((1 << 12, 1 << 8), "float32")),
    ]
    found = []
    for exe in made:
        exe.save(folder / "example.graph")
        found.append((folder / "example.graph").read_bytes())
    state = {"w": dynamic.tensor(OFFSETS, requires_grad=True), "n": [3, ("x", None)], 2: OFFSETS[0]}
    dynamic.save(OrderedDict(state), folder / "example.tensors")
    return [*found, (folder / "example.tensors").read_bytes()]


# Ways to damage one -------------------------------------------------------------------------------------------------


def members(data: bytes) -> Files:
    """The files in a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def zipped(files: Files, rng: Random, sealed: bool = True) -> bytes:
    """A zip of these, `sealed` with a digest that fits if it has one."""
    if sealed and "digest.txt" in files:
        rest = {name: data for name, data in files.items() if name != "digest.txt"}
        files = rest | {"digest.txt": digest(rest).encode()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def damaged_bytes(data: bytes, rng: Random) -> bytes:
    """Bits flipped, a piece cut out, doubled or put elsewhere."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        start, length = rng.randrange(max(1, len(changed))), rng.choice([1, 2, 16, 300])
        kind = rng.randrange(5)
        if kind == 0:
            changed[start : start + 1] = bytes(byte ^ 1 << rng.randrange(8) for byte in changed[start : start + 1])
        elif kind == 1:
            changed[start : start + length] = bytes(rng.choice([0, 255, rng.randrange(256)]) for _ in range(length))
        elif kind == 2:
            del changed[start : start + length]
        elif kind == 3:
            changed[start:start] = changed[start : start + length]
        else:
            del changed[start + 1 :]
    return bytes(changed)


def headers(data: bytes, rng: Random) -> bytes:
    """A field of the zip's own headers set to anything: sizes, offsets, methods, flags."""
    changed = bytearray(data)
    start = changed.find(rng.choice([b"PK\1\2", b"PK\3\4", b"PK\5\6"]), rng.randrange(len(changed)) // 2)
    if start >= 0:
        at, width = start + rng.randrange(4, 42), rng.choice([1, 2, 4])
        value = rng.choice([0, 1, 255, 0x7FFFFFFF, 0xFFFFFFFF, rng.randrange(1 << 32)])
        changed[at : at + width] = value.to_bytes(4, "little")[:width]
    return bytes(changed)


def shuffled(data: bytes, rng: Random) -> bytes:
    """Members renamed, exchanged, left out, doubled, damaged inside; sealed again or not."""
    files = members(data)
    names = list(files)
    one, other = rng.choice(names), rng.choice(names)
    kind = rng.randrange(6)
    if kind == 0:
        files[one], files[other] = files[other], files[one]
    elif kind == 1:
        del files[one]
    elif kind == 2:
        files[rng.choice(["arrays/7.npy", "../x", "graph.json\0", "arrays/00.npy", "x" * 300, "/"])] = files.pop(one)
    elif kind == 3:
        files[one] = damaged_bytes(files[one] or b"x", rng)
    elif kind == 4:
        files[one] = rng.choice([b"", b"PK\3\4", b"PK\5\6" + bytes(18), data, b"\x80\x04K\x01.", b"0" * 300_000])
    else:
        files["arrays/0.npy"] = array_file(rng)
    return zipped(files, rng, sealed=rng.random() < 0.9)


def array_file(rng: Random) -> bytes:
    """A `.npy` whose header says anything."""
    shape = rng.choice(
        ["(3, 4)", "(10**12,)", "(1000000000000,)", "(-1,)", "(0, 99999999999999999999)", "3", "(1,)*70"]
    )
    descr = rng.choice(
        ["'<f8'", "'>f8'", "'|O'", "'<c16'", "'<U3'", "[('a', '<f8')]", "'|V8'", "'<m8[s]'", "None", "'|b1'"]
    )
    head = f"{{'descr': {descr}, 'fortran_order': {rng.choice(['False', 'True', '2'])}, 'shape': {shape}, }}".encode()
    version = bytes([rng.choice([1, 1, 1, 2, 3, 9]), 0])
    body = bytes(rng.choice([0, 1, 12, 96, 97]))
    return b"\x93NUMPY" + version + (len(head) + 1).to_bytes(2, "little") + head + b"\n" + body


def document(data: bytes, rng: Random) -> bytes:
    """The document changed as JSON in one place or a few, and sealed."""
    files = members(data)
    name = "graph.json" if "graph.json" in files else "tree.json"
    changed = json.loads(files[name])
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        places = list(_places(changed))
        if places:
            _change(changed, rng.choice(places), places, rng)
    text = json.dumps(changed)
    files[name] = text.replace('"@deep"', rng.choice(["[" * 900 + "]" * 900, "[" * 10**5]), 1).encode()
    return zipped(files, rng)


def _places(value: Any, path: Place = ()) -> Iterator[Place]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _places(value[key], (*path, key))


def _at(document: Any, place: Place) -> Any:
    for key in place:
        document = document[key]
    return document


def _change(document: Any, place: Place, places: list[Place], rng: Random) -> None:
    holder, key = _at(document, place[:-1]), place[-1]
    value = holder[key]
    kind = rng.randrange(7)
    if kind == 0:
        holder[key] = copy.deepcopy(rng.choice(JUNK))
    elif kind == 1 and isinstance(value, int):
        holder[key] = rng.choice(
            [value + 1, value - 1, -value, value * 10**6, 10**18, 2**63, 10**4000, True, value % 1000 + 0.5]
        )
    elif kind == 2:
        holder[key] = copy.deepcopy(_at(document, rng.choice(places)))
    elif kind == 3:
        del holder[key]
    elif kind == 4 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(rng.choice([value, *JUNK])))
    elif kind == 5 and isinstance(value, list):
        rng.shuffle(value)
    elif kind == 6 and isinstance(value, str):
        holder[key] = rng.choice([*registered_ops(), "", "axis", "B", "\0", "print('run')", value + "x"])
    else:
        holder[key] = {rng.choice(KINDS): copy.deepcopy(value)}


KINDS = ["tuple", "list", "dict", "slice", "dtype", "spec", "specs", "dim", "atom", "array", "graph"]
JUNK: list[Any] = [
    None, -1, 0, 1, True, 0.5, 10**30, 1e300, float("nan"), float("inf"), "x", "", "@deep", [], {}, [[]], [0] * 50,
    {"array": 0}, {"array": 99}, {"array": -1}, {"tuple": [1]}, {"tuple": []},
    {"dim": []}, {"dim": [{"tuple": [1, 2]}]},
    {"atom": ["T"]}, {"atom": ["floordiv", 1, 0]}, {"dtype": ["O"]}, {"dtype": ["f8"]}, {"dtype": ["f4"]},
    {"dtype": ["U8"]}, {"slice": [1, 2]}, {"slice": [0, 10**12, -1]}, {"spec": [10**15, {"dtype": ["f8"]}]},
    {"spec": [10**11, {"dtype": ["f8"]}]}, {"spec": [2, 3, {"dtype": ["f8"]}]}, {"specs": [[]]}, {"dict": [1, 2]},
    {"dict": [{"list": []}, 2]}, {"print": ["x"]}, {"graph": {}}, {"a": 1, "b": 2},
]  # fmt: skip

WAYS: dict[str, Callable[[bytes, Random], bytes]] = {
    "bytes": damaged_bytes,
    "headers": headers,
    "members": shuffled,
    "document": document,
}
OFTEN = ("bytes", "headers", "members", *["document"] * 5)

# Judging one --------------------------------------------------------------------------------------------------------

MOST_CALLED = 1 << 22  # bytes of arguments and arena up to which what loads is called


def outcome(path: Path) -> str:
    """What became of a file: "refused", "loaded", "ran", "failed as a graph"; every other error is raised.

    Both engines read it, the dynamic one first.
    """
    with contextlib.suppress(ArtifactError):
        dynamic.load(path)
        return "loaded"
    try:
        loaded = static.load(path)
    except ArtifactError:
        return "refused"
    if any(node.op.name == "while_loop" for graph in loaded.graph.nested() for node in graph.nodes):
        return "loaded"  # what was damaged may be what ends the loop
    specs = [spec for spec in loaded.specs if not spec.symbols]
    known = len(specs) == len(loaded.specs)
    if not known or sum(int(node.spec.nbytes) for node in loaded.nodes() if not node.spec.symbols) > MOST_CALLED:
        return "loaded"
    arrays = iter([np.ones(spec.shape, spec.dtype) for spec in specs])
    leaves = [next(arrays) if value is None else value for value in loaded.traced.static]
    try:
        with np.errstate(all="ignore"):
            loaded(*g.tree.unflatten(loaded.traced.inputs, leaves))
    except GraphError:
        return "failed as a graph"
    return "ran"


def fuzz(count: int, seed: int, folder: Path, seconds: int = 20) -> Counter[str]:
    """What became of so many damaged files, by way and outcome. Raises what no file may raise, the file kept."""
    originals = examples(folder)
    found: Counter[str] = Counter()
    path = folder / "damaged.graph"
    for number in range(count):
        rng = Random(f"{seed}, {number}")
        way = rng.choice(OFTEN)
        path.write_bytes(WAYS[way](rng.choice(originals), rng))
        signal.alarm(seconds)  # ends the process: nothing may take that long
        try:
            found[f"{way}: {outcome(path)}"] += 1
        except Exception as error:
            error.add_note(f"seed {seed}, file {number}, {way}: {path}")
            raise
        finally:
            signal.alarm(0)
    return found


@click.command()
@click.option("--count", default=100_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--memory", default=4 << 30, show_default=True, help="Bytes of address space.")
def main(count: int, seed: int, memory: int) -> None:
    """Damage so many files, load each in bounded memory, and print what became of them."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    found = fuzz(count, seed, Path(tempfile.mkdtemp()))
    for name, times in sorted(found.items()):
        click.echo(f"{name:<32} {times:>8,}")
    click.echo(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
