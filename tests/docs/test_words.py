"""Sentences read at first sight: phrases that readers had to read twice stay out of pages, help and messages."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = sorted((ROOT / "compare").rglob("*.py"))
CODE = re.compile(r"^```.*?^```|^(?: {4}|>>> ).*?$|`[^`\n]+`", re.MULTILINE | re.DOTALL)

BANNED = {
    r"hangs? on\b": "depends on",
    r"\b(is|are|was|be|as|not) told\b(?! apart)": "say who says what, or leave it out",
    r"as much in the rest": "count what the rest is",
    r"of (dynamic|static|eager)'s time": "name both sides: static ÷ dynamic",
    r"\bcame to\b": "name the result",
    r"the other way round": "say which way",
    r"\bfor then\b": "because",
    r"\bfor (it|that|they|these) (is|are|has|have)\b": "because",
    r"\b[Ww]hat (it|this|a|the) [^.,;:]{1,40} (is|are) (that|what)\b": "begin with the subject",
    r"\b[Ww]hat is (no|not) [^.,;:]{0,30} is\b": "begin with the subject",
    r"put down to": "say which tool names which line",
    r"stands? among the reasons": "the reasons show",
    r"\bso that nothing tells\b": "is not known",
    r"\bnot to be (compared|judged)\b": "do not compare",
    r"\b(is|are) no (array|error|number|check|loss|class|classes|argument|arguments|list|problem|text)\b": "is not a",
    r"\bover 1 \w+s\b": "singular",
    r"\(1 rows\)": "singular",
    r"\bafter 1 calls\b": "singular",
    r"\bin the median(?! cell)\b": "median",
    r"\bif they differ, it is\b": "say which verdict the claim gets, and when",
    r"\bmore in no cell\b": "nowhere",
    r"\bwins: [^.]* ÷ ": "say how many times faster, or how much more memory",
    r"\bcounts with the mode\b": "say which one stands for static",
    r"\bmakes a load of 1: ": "say who else used the machine",
    r"\btrust no\b": "say which differences may be noise",
    r"\bmay lie otherwise\b": "may differ",
    r"\bruns of a step pay for\b": "if the step runs so often, compiling pays",
    r"\bspeak against the claim if [^.]{1,20} lies above\b": "say what static did better",
    r"\bis there if you measure\b": "name the option, then what it does",
}
"""One list: a phrase as a pattern, and what to write instead."""


def texts(path: Path) -> list[tuple[int, str]]:
    """What a reader sees of a file, with its line: the prose of a page, or a module's strings, docstrings apart."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        prose = CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
        return [(1, prose)]
    return list(strings(ast.parse(text), docstrings=path.parent.name == "cli"))


def strings(tree: ast.Module, *, docstrings: bool):
    hidden = set() if docstrings else {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            yield node.lineno, node.value


def found(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line + text[: hit.start()].count(chr(10))}: {hit[0]!r}: {remedy}"
        for line, text in texts(path)
        for pattern, remedy in BANNED.items()
        for hit in re.finditer(pattern.replace(" ", r"\s+"), text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_sentence_that_must_be_read_twice(page):
    assert found(page) == []


def test_no_string_that_a_command_shows_must_be_read_twice():
    assert [one for path in SOURCES for one in found(path)] == []


def test_the_search_sees_prose_strings_and_parts_of_them_and_no_code(tmp_path):
    assert [line for line, _ in strings(ast.parse('"""Doc."""\nx = f"a {1} hangs on"\n'), docstrings=False)] == [
        2,
        2,
        2,
    ]
    page = ROOT / "docs" / "page.md"
    assert re.search("hangs", CODE.sub("", "```\nhangs\n```\n`hangs`\n    hangs\n")) is None
    assert page.suffix == ".md"
