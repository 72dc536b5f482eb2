"""What a framework's pieces come to, and what all of them share."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """The parts of a user's file, in the order of a file; a function in a closure is given the names `closed`."""

    imports: str
    definitions: str
    setting: str
    arguments: str
    body: str
    batches: str
    closed: tuple[str, ...] = ()
    decorator: str = ""


ARGUMENTS = {"list": "x, y", "DataLoader": "x, y"}
"""What a call has, if not one batch."""

UNPACKED = {
    "dict": 'x, y = batch["x"], batch["y"]\n',
    "dataclass": "x, y = batch.x, batch.y\n",
    "keywords": 'y = batch["y"]\n',
}
"""How the function comes by x and y; a model that is called with keywords takes x from the batch by itself."""


def returned(outputs: str, first: str, second: str) -> str:
    """The last line of the function."""
    return {
        "number": f"return {first}\n",
        "tuple": f"return {first}, {second}\n",
        "dict": f'return {{"loss": {first}, "prediction": {second}}}\n',
        "ModelOutput": f"return Output(loss={first}, prediction={second})\n",
        "None": "",
    }[outputs]


def shifted(text: str, deep: int) -> str:
    """The lines, so many levels deeper."""
    return "".join(f"{' ' * 4 * deep}{line}\n" for line in text.splitlines())
