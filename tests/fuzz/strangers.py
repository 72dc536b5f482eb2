"""Saved graphs altered by a stranger: `python -m tests.fuzz.strangers --count 20000`.

The digests are right, and each file is a zip like any other: options, sizes, dtypes, operands, ops and constants are
others. What loads is called, by NumPy's kernels and by native code. Each file must be refused with an error of ours, or
give the same numbers in every backend. `tests.fuzz.artifacts` damages the files themselves.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np

import graphs as g
import static
from graphs import dims
from graphs.errors import GraphError
from tests.fuzz.artifacts import JUNK, Files, Place, array_file, members, zipped
from tests.fuzz.operands import BACKENDS, CONTROL, assert_alike
from tests.helpers.wrong_operands import DTYPES, OPS, samples_of

LARGEST = 1 << 20  # bytes of all values up to which what loads is called
SECONDS = 5  # after which a call is endless

# Files that are altered ---------------------------------------------------------------------------------------------


def originals() -> Iterator[Files]:
    """The files in saved graphs: two samples of each op, their gradients, and loops and branches with theirs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "original.graph"
        for function, arrays in _functions():
            with contextlib.suppress(GraphError), np.errstate(all="ignore"):
                static.compile(function, *arrays).save(path)
                yield members(path.read_bytes())


def _functions() -> Iterator[tuple[Any, Sequence[Any]]]:
    for name in OPS:
        for sample in samples_of(name)[:2]:
            yield sample, sample.arrays
            positions = sample.differentiable
            if positions:
                yield static.grad(lambda *arrays, s=sample: g.sum(s(*arrays)), positions), sample.arrays
    for function, arrays in CONTROL.values():
        yield function, arrays
        yield lambda *arrays, f=function: static.grad(lambda *xs: g.sum(g.tree.leaves(f(*xs))[0]))(*arrays), arrays
    rows = g.TensorSpec(("B", "T"), "float64")  # of sizes that are not known, which NumPy's kernels take in groups
    yield lambda x: g.tanh(g.reshape(x, (-1,)) * 2)[: x.shape[0]], [rows]
    for _ in range(8):
        yield lambda x: (g.softmax(g.tanh(x) * 0.5 + x, axis=-1), g.sum(x * x + 1, axis=0)), [rows]
        yield static.value_and_grad(lambda x: g.mean(g.square(g.tanh(x * 2)))), [rows]


# Ways to alter one --------------------------------------------------------------------------------------------------

NUMBERS = [-(10**20), -(2**31), -7, -2, -1, 0, 1, 2, 3, 5, 8, 64, 1000, 2**31, 2**63 - 1, 10**20, True, False, 0.5, 1.0]


def altered(files: Files, rng: Random) -> bytes:
    """A zip of these files, of which some places are others."""
    document = json.loads(files["graph.json"])
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        with contextlib.suppress(
            LookupError, TypeError, AttributeError
        ):  # what was altered before is no graph any more
            rng.choice([_option, _option, _option, _spec, _wiring, _wiring, _op, _anything])(document, rng)
    changed = files | {"graph.json": json.dumps(document).encode()}
    arrays = [name for name in changed if name.startswith("arrays/")]
    if arrays and rng.random() < 0.1:
        changed[rng.choice(arrays)] = _array(rng)
    return zipped(changed, rng)


def _array(rng: Random) -> bytes:
    if rng.random() < 0.1:
        return array_file(rng)
    buffer = io.BytesIO()
    shape = tuple(rng.choice([0, 1, 2, 3, 4, 9]) for _ in range(rng.randrange(4)))
    np.save(buffer, np.asfortranarray(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(rng.choice(DTYPES))))
    return buffer.getvalue()


def _nodes(graph: Any) -> Iterator[tuple[Any, Any]]:
    """The nodes of a graph, and of all that they hold, each with the list that it is in."""
    for node in graph["nodes"]:
        yield node, graph
        for inner in _graphs(node["attrs"]):
            yield from _nodes(inner)


def _graphs(value: Any) -> Iterator[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict) and set(value) == {"graph"} and "nodes" in value["graph"]:
        yield value["graph"]
    else:
        for part in parts:
            yield from _graphs(part)


def _leaves(holder: Any) -> Iterator[tuple[Any, Any]]:
    """The places of values that are no containers, outside of graphs that are held."""
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        if isinstance(holder[key], (dict, list)):
            if key != "graph":
                yield from _leaves(holder[key])
        else:
            yield holder, key


def _lists(holder: Any) -> Iterator[list[Any]]:
    if isinstance(holder, list):
        yield holder
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        if isinstance(holder[key], (dict, list)) and key != "graph":
            yield from _lists(holder[key])


def _option(document: Any, rng: Random) -> None:
    """A number, a name or a list among the attributes of a node."""
    attrs = rng.choice([node["attrs"] for node, _ in _nodes(document) if node["attrs"]] or [{}])
    lists = [part for part in _lists(attrs) if part]
    if lists and rng.random() < 0.3:
        _reordered(rng.choice(lists), rng)
        return
    leaves = list(_leaves(attrs))
    if leaves:
        holder, key = rng.choice(leaves)
        holder[key] = _other(holder[key], rng)


def _reordered(values: list[Any], rng: Random) -> None:
    at = rng.randrange(len(values))
    way = rng.randrange(4)
    if way == 0:
        del values[at]
    elif way == 1:
        values.insert(at, copy.deepcopy(rng.choice(values)))
    elif way == 2:
        rng.shuffle(values)
    else:
        values[at] = copy.deepcopy(rng.choice([*values, 0, -1, 2]))


def _other(value: Any, rng: Random) -> Any:
    if isinstance(value, bool) or value is None:
        return rng.choice([True, False, None, 0, 1, 2, -1, "x"])
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 2 * value, value + 7, *rng.sample(NUMBERS, 3)])
    if isinstance(value, float):
        return rng.choice([-value, 0.0, 1e300, float("nan"), float("inf"), 1, "x"])
    if isinstance(value, str):
        return rng.choice([*(np.dtype(code).name for code in DTYPES), "left", "right", "x", "", "B"])
    return copy.deepcopy(rng.choice(JUNK))


def _spec(document: Any, rng: Random) -> None:
    """The size, the rank or the dtype of an input."""
    specs = [n["attrs"]["spec"]["spec"] for n, _ in _nodes(document) if "spec" in n["attrs"].get("spec", ())]
    if not specs:
        return
    spec = rng.choice(specs)
    way = rng.randrange(4)
    if way == 0:
        spec[-1] = {"dtype": [np.dtype(rng.choice(DTYPES)).name]}
    elif way == 1:
        spec.insert(0, rng.choice([0, 1, 2, 3]))
    elif len(spec) > 1 and way == 2:
        del spec[0]
    elif len(spec) > 1:
        spec[rng.randrange(len(spec) - 1)] = rng.choice([0, 1, 2, 3, 4, 7, 100])


def _wiring(document: Any, rng: Random) -> None:
    """What a node, or the end of a graph, reads."""
    holder, graph = rng.choice(list(_nodes(document)))
    sources = rng.choice([holder["inputs"], holder["inputs"], graph["outputs"], graph["inputs"]])
    if sources and rng.random() < 0.7:
        sources[rng.randrange(len(sources))] = rng.randrange(len(graph["nodes"]))
    elif sources:
        _reordered(sources, rng)


def _op(document: Any, rng: Random) -> None:
    node, _ = rng.choice(list(_nodes(document)))
    alike = [other["op"] for other, _ in _nodes(document)]
    node["op"] = rng.choice([*OPS, *alike, "scan", "while_loop", "switch", "part"])


def _anything(document: Any, rng: Random) -> None:
    places: list[Place] = [(key,) for key in document]
    node, _ = rng.choice(list(_nodes(document)))
    if rng.random() < 0.9:
        key = rng.choice([*node["attrs"], "x"])
        node["attrs"][key] = copy.deepcopy(rng.choice(JUNK))
    else:
        document[rng.choice(places)[0]] = copy.deepcopy(rng.choice(JUNK))


# Judging one --------------------------------------------------------------------------------------------------------


class Endless(Exception):  # noqa: N818
    """A call took too long: what was altered may be what ends a loop."""


def _stop(*_: Any) -> None:
    raise Endless


def outcome(path: Path, backend: str, seed: int) -> Any:
    """What the graph in a file gives in a backend, after the bytes of its narrowest floats, as a list.

    Or "large", or the error of ours that it raises.
    """
    try:
        loaded = static.load(path, backend=backend)
        sizes = [size for spec in loaded.specs for size in spec.shape if isinstance(size, int)]
        if sum(n.spec.nbytes for n in loaded.nodes() if isinstance(n.spec.nbytes, int)) + sum(sizes) > LARGEST:
            return "large"
        narrowest = min((node.dtype.itemsize for node in loaded.nodes() if node.spec.is_float), default=16)
        return [narrowest, *g.tree.leaves(loaded(*_arguments(loaded, np.random.default_rng(seed))))]
    except GraphError as error:
        return error


def _arguments(loaded: Any, rng: Any) -> Any:
    names = sorted(frozenset[str]().union(*(spec.symbols for spec in loaded.specs)))
    sizes = {name: int(rng.integers(1, 5)) for name in names}
    arrays = []
    for spec in loaded.specs:
        shape = [dims.evaluate(size, sizes) for size in spec.shape]
        numbers = rng.uniform(-2, 2, shape) if spec.is_float else rng.integers(0, 3, shape)
        arrays.append(np.asarray(numbers).astype(spec.dtype))
    given = iter(arrays)
    leaves = [next(given) if value is None else value for value in loaded.traced.static]
    return g.tree.unflatten(loaded.traced.inputs, leaves)


def check(path: Path, seed: int) -> str:
    """What became of a file: "refused", "failed", "ran", "large" or "endless".

    Raises AssertionError where the backends do not agree, and what is no error of ours.
    """
    found = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for backend in BACKENDS:
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                found.append(outcome(path, backend, seed))
            except Endless:
                return "endless"
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    expected, *others = found
    for other in others:
        if isinstance(expected, (str, Exception)) or isinstance(other, (str, Exception)):
            assert type(other) is type(expected), (other, expected)
        else:
            for one, two in zip(other[1:], expected[1:], strict=True):
                assert_alike(one, two, expected[0])
    if isinstance(expected, Exception):
        return "refused" if isinstance(expected, g.ArtifactError) else "failed"
    return expected if isinstance(expected, str) else "ran"


def run(numbers: Sequence[int], seed: int, folder: Path, guards: str = "") -> Counter[str]:
    """What became of files of these numbers; those that fail are printed, and kept. Each is written as it begins."""
    signal.signal(signal.SIGALRM, _stop)
    files, found = list(originals()), Counter[str]()
    around: Any = contextlib.nullcontext()
    if guards:
        from tests.helpers.guarded import guarded

        around = guarded(before=guards == "before")
    with around:
        for number in numbers:
            rng = Random(f"{seed}, {number}")
            path = folder / "altered.graph"
            path.write_bytes(altered(rng.choice(files), rng))
            (folder / "number.txt").write_text(str(number))
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    found[check(path, number)] += 1
            except Exception as error:  # noqa: BLE001  (each is printed)
                found["wrong"] += 1
                path.rename(folder / f"altered-{number}.graph")
                click.echo(f"{number}: {type(error).__name__}: {str(error)[:900]}")
    return found


@click.command()
@click.option("--count", default=20_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--first", default=0, help="The number of the first file.")
@click.option(
    "--guards", default="", type=click.Choice(["", "behind", "before"]), help="Where nobody may touch memory."
)
@click.option("--folder", type=click.Path(path_type=Path), help="Where files that fail are kept.")
@click.option("--here", is_flag=True, help="In this process, under the tools that watch it.")
def main(count: int, seed: int, first: int, guards: str, folder: Path | None, here: bool) -> None:
    """Alter so many saved graphs, load and call each in every backend, and print what became of them."""
    folder = folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if here:
        found = run(range(first, count), seed, folder, guards)
        click.echo(f"{', '.join(f'{n:,} {what}' for what, n in sorted(found.items()))} of {count - first:,}")
        sys.exit(bool(found["wrong"]))
    ended = 0
    while True:
        options = ["--count", str(count), "--seed", str(seed), "--first", str(first), "--guards", guards]
        options += ["--folder", str(folder), "--here"]
        code = subprocess.run([sys.executable, "-m", "tests.fuzz.strangers", *options], check=False).returncode
        if code >= 0:
            click.echo(f"{ended} ended the process; files that fail: {folder}")
            sys.exit(1 if code or ended else 0)
        number = int((folder / "number.txt").read_text())
        (folder / "altered.graph").rename(folder / f"altered-{number}.graph")
        ended, first = ended + 1, number + 1
        click.echo(f"{number} ended the process with the signal {-code}")


if __name__ == "__main__":
    main()
