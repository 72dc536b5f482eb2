"""The index of folders in docs/architecture.md, and the paths in docs/walkthrough.md: `python -m docs.website.rooms`.

Each row of the index is what the docstring of the folder says, in the order of the floors in pyproject.toml. In the
walkthrough, "`name` in `file`" gets the file that defines the name, so that nobody edits a path when a file moves.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
WALKTHROUGH = ROOT / "docs" / "walkthrough.md"
INDEX = re.compile(r"(?s)(?<=<!-- made by python -m docs.website.rooms -->\n).*")
NAME_IN_FILE = re.compile(r"`([\w.]+)`(\s+in\s+)`([\w/]+)\.py`")


def index() -> str:
    """A table for each package: its folders, and the first paragraph of what each says of itself."""
    floors = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["graphduel"]["floors"]
    return "\n".join(_table(package, floors[package]) for package in ("graphs", "static", "dynamic", "compare"))


def _table(package: str, floors: list[str]) -> str:
    rooms = sorted(
        (path.parent.relative_to(ROOT) for path in (ROOT / package).rglob("__init__.py")),
        key=lambda room: ([floors.index(name) for name in room.parts[1:2]], room.parts),
    )
    rows = (f"| [`{room.as_posix()}/`](../{room.as_posix()}/) | {_says(room)} |" for room in rooms)
    return "\n".join(["", f"| folder of `{package}` | what is in it |", "|---|---|", *rows, ""])


def _says(room: Path) -> str:
    text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def located(text: str) -> str:
    """A text in which each "`name` in `file`" names a file that defines the name.

    Raises ValueError where another file than the one named does not define it, or several do.
    """
    definitions = _definitions()

    def place(match: re.Match[str]) -> str:
        name, between, file = match.groups()
        top = name.partition(".")[0]
        if top in definitions.get(file, ()):
            return match[0]
        files = [path for path, names in definitions.items() if top in names]
        if len(files) != 1:
            raise ValueError(
                f"{name} in {file}.py is defined in {len(files)} files, {', '.join(files)}; correct the page"
            )
        return f"`{name}`{between}`{files[0]}.py`"

    return NAME_IN_FILE.sub(place, text)


@functools.cache
def _definitions() -> dict[str, set[str]]:
    """By each file of the packages, without its suffix, the names that it defines."""
    return {path: set(_defined(path)) for path in _modules()}


def _modules() -> Iterator[str]:
    for package in ("graphs", "static", "dynamic", "compare"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).with_suffix("").as_posix()


def _defined(module: str) -> Iterator[str]:
    for statement in ast.parse((ROOT / f"{module}.py").read_text("utf-8")).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def pages() -> dict[Path, str]:
    """Both pages, as they should be."""
    overview, walk = ARCHITECTURE.read_text("utf-8"), WALKTHROUGH.read_text("utf-8")
    return {ARCHITECTURE: INDEX.sub(lambda _: index(), overview), WALKTHROUGH: located(walk)}


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
