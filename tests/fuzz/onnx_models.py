"""Models of ONNX, altered at random: `python -m tests.fuzz.onnx_models --count 500`.

Numbers, names, types and bytes are exchanged for others that are hard, parts are left out or doubled, and bytes are cut
and flipped. Each model must be read or refused, and what is read must run or fail as a GraphError, in the dynamic
engine and compiled, in bounded memory and time. Each has a process of its own, so that a crash is counted too.
"""

from __future__ import annotations

import os
import resource
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import click
import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto

import dynamic
import graphs as g
import static
from graphs.errors import GraphError
from graphs.onnx import OnnxModel, load

Spot = tuple[Any, FieldDescriptor]  # a message, and a field of it

# Models to alter ----------------------------------------------------------------------------------------------------


def examples() -> list[bytes]:
    """Training steps, control flow and symbolic sizes as they are exported, and node tests of the package onnx."""

    def dense(w: Any, x: Any) -> Any:
        return g.sum(g.tanh(x @ w)[:, ::2] ** 2)

    def controlled(x: Any, n: Any) -> Any:
        total = g.scan(lambda c, a: (c * 0.5 + a, g.sin(c)), g.zeros(3, np.float32), x)
        return total, g.cond(n > 0, lambda: g.sum(x), lambda: g.max(x))

    exported = [
        static.export(static.value_and_grad(dense), g.TensorSpec((3, 2)), g.TensorSpec(("N", 3))),
        static.export(controlled, g.TensorSpec((4, 3)), np.asarray(2)),
        static.export(lambda x: g.reshape(x, (-1, 2))[: x.shape[0] // 2 + 1], g.TensorSpec(("N", 4))),
    ]
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    nodes = [case.model.SerializeToString() for case in cases[:: max(1, len(cases) // 150)]]
    return [*exported * 10, *nodes]


# Ways to alter one --------------------------------------------------------------------------------------------------

INTS = [0, 1, -1, 2, 3, 7, -8, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
FLOATS = [0.0, -1.0, 1e30, float("nan"), float("inf")]


def spots(message: Any) -> Iterator[Spot]:
    """The fields that are set in a message, and in those that it holds."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None:
            for part in value if is_repeated(field) else [value]:
                yield from spots(part)


def is_repeated(field: FieldDescriptor) -> bool:
    return bool(getattr(field, "is_repeated", None) or getattr(field, "label", 0) == 3)


def altered(data: bytes, rng: Random) -> bytes:
    """A model with one thing, or a few, that is another than it was."""
    if rng.random() < 0.15:
        return damaged_bytes(data, rng)
    proto = ModelProto.FromString(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = list(spots(proto))
        names = [name for message, _ in places if message.DESCRIPTOR.name == "NodeProto" for name in message.input]
        message, field = rng.choice(places)
        if is_repeated(field):
            alter_list(getattr(message, field.name), field, names, rng)
        elif field.message_type is not None or rng.random() < 0.2:
            message.ClearField(field.name)
        else:
            put(message, field, other(getattr(message, field.name), field, names, rng))
    return proto.SerializeToString()


def put(message: Message, field: FieldDescriptor, value: Any) -> None:
    """Set a field; what protobuf does not take for it is left out."""
    try:
        setattr(message, field.name, value)
    except ValueError:
        message.ClearField(field.name)


def alter_list(values: Any, field: FieldDescriptor, names: Sequence[str], rng: Random) -> None:
    """A list with an element less, an element twice, two exchanged, or one altered."""
    kind, at = rng.randrange(4), rng.randrange(len(values))
    parts = list(values)
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts.insert(rng.randrange(len(parts) + 1), parts[at])
    elif kind == 2 or field.message_type is not None:
        to = rng.randrange(len(parts))
        parts[at], parts[to] = parts[to], parts[at]
    else:
        parts[at] = other(parts[at], field, names, rng)
    copies = [type(part).FromString(part.SerializeToString()) if isinstance(part, Message) else part for part in parts]
    before = list(values)
    del values[:]
    try:
        values.extend(copies)
    except ValueError:
        values.extend(before)


def other(value: Any, field: FieldDescriptor, names: Sequence[str], rng: Random) -> Any:
    """Another value of the kind of a field."""
    if isinstance(value, int):
        return rng.choice([*INTS, value + 1, value - 1])
    if isinstance(value, float):
        return rng.choice(FLOATS)
    if isinstance(value, bytes):
        return rng.choice([b"", b"\xff", value[:-1], value + b"\x00", value * 2, bytes(rng.randbytes(len(value)))])
    return rng.choice(["", "in", "é", value + "x", *rng.sample(list(names), min(3, len(names)))])


def damaged_bytes(data: bytes, rng: Random) -> bytes:
    """Bytes flipped, cut out or doubled."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 4])):
        start, length = rng.randrange(max(1, len(changed))), rng.choice([1, 2, 16, 300])
        piece = changed[start : start + length]
        changed[start : start + length] = rng.choice([b"", piece * 2, rng.randbytes(len(piece))])
    return bytes(changed)


# Judging one --------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What became of a model, and the error of Python's own, where there was one."""

    word: str
    error: str = ""


def outcome(data: bytes) -> Outcome:
    """Read a model, and run it on ones in the dynamic engine, compiled, and compiled for any size."""
    try:
        model = load(data)
        ran = [_runs(model, way) for way in ("dynamic", "compiled", "symbolic")]
    except GraphError:
        return Outcome("refused")
    except Exception:  # noqa: BLE001  (what is counted)
        return Outcome("error of Python's own", traceback.format_exc())
    return Outcome("ran" if all(ran) else "read")


def _runs(model: OnnxModel, way: str) -> bool:
    specs = [spec for spec in model.inputs.values() if spec is not None]
    if len(specs) < len(model.inputs):
        return False
    shapes = [[size if isinstance(size, int) else 2 for size in spec.shape] for spec in specs]
    if max((int(np.prod(shape, dtype=float)) for shape in shapes), default=0) > 1 << 20:
        return False
    arrays = [np.ones(shape, spec.dtype) for shape, spec in zip(shapes, specs, strict=True)]
    try:
        with np.errstate(all="ignore"):
            if way == "dynamic":
                model(*map(dynamic.Tensor, arrays))
            else:
                static.compile(model, *(arrays if way == "compiled" else specs))(*arrays)
    except GraphError:
        return False
    return True


def apart(data: bytes, seconds: int, memory: int) -> Outcome:
    """The outcome in a process of its own, which may crash or hang."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        signal.alarm(seconds)
        with os.fdopen(write, "w", encoding="utf-8") as pipe:
            pipe.write("\n".join(outcome(data)))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Outcome("hang" if number == signal.SIGALRM else "crash", signal.Signals(number).name)
    return Outcome(*text.split("\n", 1))


BAD = {"error of Python's own", "crash", "hang"}


def fuzz(count: int, seed: int, folder: Path | None = None, seconds: int = 20, memory: int = 4 << 30) -> Counter[str]:
    """What became of so many altered models; those that broke are kept in `folder`."""
    originals = examples()
    counts: Counter[str] = Counter()
    for number in range(count):
        rng = Random(f"{seed}, {number}")
        data = altered(rng.choice(originals), rng)
        result = apart(data, seconds, memory)
        counts[result.word] += 1
        if result.word in BAD and folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{seed}-{number}.onnx").write_bytes(data)
            click.echo(f"{seed}-{number}: {result.word}\n{result.error}")
    return counts


@click.command()
@click.option("--count", default=500, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--folder", default="build/onnx_models", show_default=True, type=click.Path(path_type=Path))
def main(count: int, seed: int, folder: Path) -> None:
    """Alter so many models, read and run each, and print what became of them."""
    counts = fuzz(count, seed, folder)
    for word, times in sorted(counts.items()):
        click.echo(f"{word:<24} {times:>6,}")
    raise SystemExit(any(counts[word] for word in BAD))


if __name__ == "__main__":
    main()
