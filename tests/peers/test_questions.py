"""The questions of docs/questions.md: each command runs, and says what the page shows, numbers aside."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.docs.pages import FENCE, INDENTED, ROOT

pytest.importorskip("torch")
pytest.importorskip("jax")

SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n)*)", re.MULTILINE)
SECTIONS = dict(SECTION.findall((ROOT / "docs" / "questions.md").read_text("utf-8")))
SHOWN = [question for question, text in SECTIONS.items() if "```text" in text]
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:\+\w+)?(?:e[+-]?\d+)?(?: ?(?:ns|µs|ms|s|min|B|[KM]iB|×|%)(?!\w))?")
VERDICT = re.compile(r"^(?:Stay|Compile|Cannot tell|With|On|The answer)\b|.*\bBeside compile: ", re.DOTALL)
PARTS = re.compile(r"(?<=: )[^:.,]+ #(?:, [^:.,]+ #)* and [^:.,]+ #")
ANOTHER = "envs/torch-2.12"
"""The environment in the page's command; here it is that of the tests, which has the same version."""


def outline(text):
    """A text on one line, with `#` for each number and its unit; parts of a time stand in the order of their names."""
    text = NUMBER.sub("#", re.sub(r"\s+", " ", text)).strip()
    return PARTS.sub(lambda parts: ", ".join(sorted(re.split(", | and ", parts[0]))), text)


@pytest.mark.slow
@pytest.mark.parametrize("question", SHOWN)
def test_the_command_gives_the_answer_of_the_page(question):
    commands = INDENTED.findall(SECTIONS[question])
    (shown,) = (fence[3] for fence in FENCE.finditer(SECTIONS[question]) if fence[1] == "text")
    answers = []
    for command in commands:
        words = shlex.split(command.replace(ANOTHER, sys.prefix))
        ran = subprocess.run(
            [sys.executable, "-m", "compare", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ran.returncode in (0, 3, 6), ran.stderr  # 3: other programs run beside this one
        answers.append(ran.stdout)
    answer = outline("\n".join(answers))
    parts = [part for part in re.split(r"^\.\.\.$|\n\n", shown, flags=re.MULTILINE) if part.strip()]
    assert parts
    for part in parts:
        assert VERDICT.match(part) or outline(part) in answer, part
