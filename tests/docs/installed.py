"""What the pages tell a reader to run, run by what is installed: `python -m tests.docs.installed --bin BIN [PAGE...]`.

Everything runs in a new folder outside the project, which has what a reader has there: the files that a page saves, and
examples/. `--extras` prints what the pages install instead.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs import pages

BRIEF = ("--processes", "3", "--seconds", "0.2")
BRIEFER = ("--processes", "0", "--seconds", "0.05")
"""For a step of a framework, whose compiler takes as long as it takes."""
ANSWERED = (0, 3)
"""3: a measurement as short as this may tell nothing apart."""


def checked(page: Path, programs: Path, *, plain: bool = False) -> Iterator[str]:
    """What is wrong with the programs and commands of a page, or with those that need nothing but graphduel."""
    with _folder(page) as folder:
        yield from _typed(page, programs / "python", folder)
    with _folder(page) as folder:
        for command in pages.commands(page):
            if plain and pages.MORE.search(command):
                continue
            name, *words = shlex.split(command)
            brief = BRIEFER if "examples/frameworks" in command else BRIEF
            done = _ran([str(programs / name), *words, *(brief if words[0] == "compare" else ())], folder)
            if done.returncode not in ANSWERED or "Only dynamic was measured" in done.stdout:
                yield f"{page.name}: {command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"


@contextmanager
def _folder(page: Path) -> Iterator[Path]:
    """A folder with what a reader has."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {**pages.saved(pages.README), **pages.saved(page)}.items():
            (folder / file).write_text(text, "utf-8")
        shutil.copytree(pages.ROOT / "examples", folder / "examples")
        yield folder


def _typed(page: Path, python: Path, folder: Path) -> Iterator[str]:
    """Whether the programs of a page print what it says."""
    blocks = list(pages.programs(page))
    done = _ran([str(python), "-c", pages.PROGRAM], folder, json.dumps([block for block, _ in blocks]))
    printed = [] if done.returncode else json.loads(done.stdout)
    if done.returncode or any(told not in (None, out) for out, (_, told) in zip(printed, blocks, strict=True)):
        yield f"{page.name}: its programs print {printed}\n{done.stderr}"


def _ran(command: list[str], folder: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)


def main() -> None:
    """Check the pages that are named; exit code 1 where one does not work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", type=Path, nargs="*")
    parser.add_argument("--bin", dest="programs", type=Path, help="the folder of the programs of an environment")
    parser.add_argument("--extras", action="store_true", help="print what the pages install, and run nothing")
    parser.add_argument("--plain", action="store_true", help="leave out what needs more than graphduel")
    asked = parser.parse_args()
    chosen = asked.pages or [pages.README, pages.TUTORIAL, pages.OWN, pages.FRAMEWORKS]
    if asked.extras:
        extras, packages = (set().union(*sets) for sets in zip(*map(pages.installed, chosen), strict=True))
        print(f"[{','.join(sorted(extras))}]", *sorted(packages))
        return
    wrong = []
    for page in chosen:
        wrong += checked(page, asked.programs.absolute(), plain=asked.plain)
        print(f"{page.name}: done", flush=True)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
