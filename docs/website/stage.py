"""Lay out the pages of the site: the Markdown of the repository, the files that it links to, and generated pages.

Files keep their paths, so that a relative link works in a checkout and on the site. A link to a folder or to a Python
file leads to a page with the code of that folder.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from docs.website import api, claims

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build" / "pages"
FIRST = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "reports/*/*.md", "docs/website/extra.css")
FENCED = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^(```\w+) file=(\S+)$", re.MULTILINE)
"""Code that the page asks to save under a name, which the site shows as its title."""
LINK = re.compile(r"(?<!\\\]\()(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")


def lay_out(pages: Path = PAGES) -> None:
    """Write every page below `pages`, after emptying it. Raises FileNotFoundError for a link to nothing."""
    shutil.rmtree(pages, ignore_errors=True)
    waiting = [path for pattern in FIRST for path in sorted(ROOT.glob(pattern))]
    done: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in done:
            done.add(path)
            waiting += _write(path, pages / path.relative_to(ROOT))
    for name, text in {**claims.pages(ROOT / "reports" / "reference"), **api.pages()}.items():
        _save(pages / "docs" / name, text)


def _write(path: Path, target: Path) -> list[Path]:
    """Write one file or folder to the site. Returns what it links to."""
    if path.is_dir():
        _save(target / "README.md", folder_page(path))
        return []
    if path.suffix != ".md":
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        return []
    text, linked = rewritten(path.read_text("utf-8"), path)
    _save(target, NAMED.sub(r'\1 title="\2"', text))
    return linked


def rewritten(text: str, path: Path) -> tuple[str, list[Path]]:
    """The text of a page with links to code led to pages of code, and the files and folders that it links to."""
    linked: list[Path] = []

    def link(found: re.Match[str]) -> str:
        if ":" in found[1]:
            return found[0]
        target = (path.parent / found[1]).resolve(strict=True)
        folder = target.parent if target.suffix == ".py" else target
        linked.append(folder)
        if not folder.is_dir():
            return found[0]
        anchor = f"#{target.stem}" if folder != target else ""
        return os.path.relpath(folder / "README.md", path.parent) + anchor

    def outside(part: str) -> str:
        return LINK.sub(link, part)

    return "".join(_mapped(text, outside)), linked


def _mapped(text: str, change: object) -> Iterator[str]:
    """The text, changed where it is no code."""
    end = 0
    for code in FENCED.finditer(text):
        yield change(text[end : code.start()])  # type: ignore[operator]
        yield code[0]
        end = code.end()
    yield change(text[end:])  # type: ignore[operator]


def folder_page(folder: Path) -> str:
    """A page with the code of each Python file in a folder."""
    files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    parts = [f"## {path.name} {{ #{path.stem} }}\n\n```python\n{path.read_text('utf-8')}```\n" for path in files]
    return "\n".join([f"# {folder.relative_to(ROOT)}\n", *parts])


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    lay_out()
