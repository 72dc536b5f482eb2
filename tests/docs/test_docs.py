"""The documentation is true: its programs run and print what it says, and its links, names and commands exist."""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

import graphs
from compare import errors
from compare.claims import CLAIMS
from compare.cli.command import graphduel
from docs.website import abilities, rooms
from tests.docs import pages
from tests.docs.pages import FENCE, PROGRAM, README, ROOT, TUTORIAL, programs, saved
from tests.helpers.slow import mostly_slow

EXTENDING = ROOT / "docs" / "extending.md"
COMMANDS = ROOT / "docs" / "commands.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"`((?:[\w.]+/)+[\w.-]*|[\w-]+\.md)`")
COMMAND = re.compile(r"^\| `graphduel (\w+)[^`]*` \|(.*)\|([^|]*)\|$", re.MULTILINE)
CODE = re.compile(r"^\| (\d+) \|", re.MULTILINE)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def python(arguments, folder, text=None):
    command = [sys.executable, "-W", "error", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def slugs(page):
    """The anchors that headings have on the usual forges."""
    text = FENCE.sub("", page.read_text("utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def with_programs():
    """The pages that have some. One compares the engines, and measuring takes its time."""
    for page in PAGES:
        if page != EXTENDING and any(programs(page)):  # that one changes a checkout: test_extending.py
            text = page.read_text("utf-8")
            marks = [pytest.mark.slow] if "compare.compare(" in text else []
            if "graphduel[onnx]" in text and find_spec("onnx") is None:
                marks = [pytest.mark.skip(reason="onnx is not installed")]
            yield pytest.param(page, id=page.name, marks=marks)


@pytest.mark.parametrize("page", [*with_programs()])
def test_programs_print_what_the_page_says(page, tmp_path):
    for name, text in saved(page).items():
        (tmp_path / name).write_text(text, "utf-8")
    blocks, told = zip(*programs(page), strict=True)
    printed = json.loads(python(["-c", PROGRAM], tmp_path, json.dumps(blocks)))
    assert [out for out, text in zip(printed, told, strict=True) if text] == [text for text in told if text]


def test_the_tutorial_works_typed_into_python_step_by_step(tmp_path):
    for name, text in saved(TUTORIAL).items():
        (tmp_path / name).write_text(text, "utf-8")
    page = TUTORIAL.read_text("utf-8")
    typed = [fence[3] for fence in FENCE.finditer(page) if fence[1] == "python" and "file=" not in fence[2]]
    told = "".join(text for _, text in programs(TUTORIAL) if text)
    assert python(["-q", "-i"], tmp_path, "".join(typed)) == told
    assert page.count("**Predict:**") >= told.count("\n") / 4


def test_the_tutorial_uses_no_file_or_command_before_it_is_there():
    page = TUTORIAL.read_text("utf-8")
    saved, activated = page.index("```python file=mine.py"), page.index(". .venv/bin/activate")
    assert activated < page.index("    graphduel ")
    assert saved < page.index("graphduel graph mine.py")
    assert saved < page.index("from mine import")


PICTURES = """
import numpy as np
import static
from graphs.drawing import GraphDrawing, difference, of_graph
from mine import inputs, loss, signed

gradient = static.value_and_grad(loss)
traced, step = static.trace(gradient, *inputs[0]), static.compile(gradient, *inputs[0])
traced.draw().save("tutorial-step.svg")
static.trace(static.converted(signed), np.array([1.0, 2.0])).draw().save("tutorial-branch.svg")
GraphDrawing(difference(of_graph(traced), of_graph(step.graph))).save("tutorial-passes.svg")
step.draw_memory().save("tutorial-memory.svg")
"""


def test_the_pictures_of_the_tutorial_are_those_of_its_file(tmp_path):
    """To make them anew: run `PICTURES` beside mine.py, and copy what it writes to docs/."""
    for name, text in saved(TUTORIAL).items():
        (tmp_path / name).write_text(text, "utf-8")
    python(["-c", PICTURES], tmp_path)
    for picture in re.findall(r"\]\((tutorial-\w+\.svg)\)", TUTORIAL.read_text("utf-8")):
        drawn, shown = (ET.parse(folder / picture).getroot() for folder in (tmp_path, ROOT / "docs"))
        tips = "{http://www.w3.org/2000/svg}title"
        assert sorted(tip.text for tip in drawn.iter(tips)) == sorted(tip.text for tip in shown.iter(tips)), picture


@pytest.mark.parametrize("page", mostly_slow([README, TUTORIAL], 1), ids=lambda page: page.name)
def test_the_first_command_answers_on_the_function_that_the_page_saves(page, tmp_path):
    (saved,) = (fence[3] for fence in FENCE.finditer(page.read_text("utf-8")) if "file=mine.py" in fence[2])
    (tmp_path / "mine.py").write_text(saved, "utf-8")
    assert "graphduel compare mine.py:loss" in page.read_text("utf-8")
    options = ["--processes", "0", "--seconds", "0.01"]
    done = CliRunner().invoke(graphduel, ["compare", str(tmp_path / "mine.py:loss"), *options])
    assert done.exit_code in (0, 3), done.output
    assert "\n\nloss: value and gradients over 3 inputs" in done.stdout
    assert "static-exact" in done.stdout


def test_the_commands_of_the_pages_are_found_and_are_those_of_the_tool():
    found = {page: pages.commands(page) for page in (README, TUTORIAL, pages.OWN, pages.FRAMEWORKS)}
    assert all(found.values())
    assert {command.split()[1] for several in found.values() for command in several} <= set(graphduel.commands)
    assert "graphduel compare mine.py:loss" in found[README]
    assert "graphduel report reports/loss" in found[pages.OWN]
    assert found[pages.OWN][-1] == "graphduel compare mine.py:loss --modes dynamic,static-native,static-onnxruntime"
    assert pages.installed(README) == (set(), {"torch"})
    assert pages.installed(pages.OWN)[0] == {"native", "onnxruntime"}


def test_the_citation_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = dict(re.findall(r'^([\w-]+): "?(.*?)"?$', (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE))
    assert cited["version"] == project["version"]
    assert cited["license"] in project["license"]
    assert cited["title"].startswith(project["name"])


@each_page
def test_links_lead_somewhere(page):
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in slugs(found), target


@each_page
def test_files_named_are_there(page):
    made = {"report.md", "reports/", "reports/quick/report.html", "reports/quick", "plots/", "arrays/N.npy"}
    made |= {"build/site", "build/pages", "reports/mine/report.html"}
    named = set(FILE.findall(FENCE.sub("", page.read_text("utf-8")))) - made
    missing = {name for name in named if not (ROOT / name).exists() and not name.startswith(".venv")}
    assert not missing


def test_the_index_of_folders_and_the_paths_of_the_walkthrough_are_up_to_date():
    for page, text in rooms.pages().items():
        assert page.read_text("utf-8") == text, "write them by: python -m docs.website.rooms"


def test_a_path_follows_its_name_and_a_name_of_several_files_is_refused():
    assert rooms.located("`Pullback` in\n`graphs/spec.py`") == "`Pullback` in\n`graphs/reverse.py`"
    with pytest.raises(ValueError, match=r"measure in graphs/spec.py is defined in \d+ files"):
        rooms.located("`measure` in `graphs/spec.py`")


def test_every_name_in_the_walkthrough_is_defined_in_that_file():
    named = rooms.NAME_IN_FILE.findall(rooms.WALKTHROUGH.read_text("utf-8"))
    assert len(named) > 30
    for name, _, path in named:
        if path.startswith("static/native/") and not importlib.util.find_spec("llvmlite"):
            continue
        value = importlib.import_module(path.removesuffix("/__init__").replace("/", "."))
        for part in name.split("."):
            assert hasattr(value, part), f"{name} in {path}.py"
            value = getattr(value, part)


@each_page
def test_functions_named_exist(page):
    for package, name in re.findall(r"`(graphs|static|dynamic|compare)\.(\w+)[`(]", page.read_text("utf-8")):
        module = importlib.import_module(package)
        files = ROOT / package / f"{name}.py", ROOT / package / name / "__init__.py"
        assert any(file.exists() for file in files) or hasattr(module, name), f"{package}.{name}"


def test_what_a_newcomer_reads_ends_at_8000_words():
    """Each page of the list has about the words that the list says, and nothing generated is among them."""
    index = ROOT / "docs" / "README.md"
    reading = index.read_text("utf-8").partition("## Reading\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \[[\w-]+\]\(([\w./-]+)\) \|.*\| ([\d,]+) \|$", reading, re.MULTILINE)
    words = {path: len((index.parent / path).read_text("utf-8").split()) for path, _ in rows}
    assert len(words) == 6
    assert not {"ops.md", "torch-names.md"} & set(words)
    assert sum(words.values()) <= 8000, words
    assert words["limits.md"] <= 1500
    for path, said in rows:
        assert abs(words[path] - int(said.replace(",", ""))) <= 0.1 * words[path], (path, words[path])


def test_every_page_is_in_the_list_of_pages():
    index = ROOT / "docs" / "README.md"
    listed = {path.split("#")[0] for path in LINK.findall(index.read_text("utf-8"))}
    assert {path.name for path in index.parent.glob("*.md")} - {"README.md"} <= listed


def test_ops_said_to_be_missing_are_missing():
    text = (ROOT / "docs" / "limits.md").read_text("utf-8")
    sentence = re.sub(r"\s+", " ", text).partition("Not there yet: ")[2].partition(". ")[0]
    missing = re.findall(r"`(\w+)`", sentence)
    assert missing
    assert not set(missing) & {*graphs.__all__}


def test_the_commands_are_those_of_the_tool():
    told = {name: row for name, row, _ in COMMAND.findall(COMMANDS.read_text("utf-8"))}
    assert set(told) == set(graphduel.commands)
    for name, row in told.items():
        shown = CliRunner().invoke(graphduel, [name, "--help"], terminal_width=200)
        assert shown.exit_code == 0
        assert all(option in shown.output for option in re.findall(r"--\w+", row)), name


def test_the_table_of_engines_is_what_the_adapters_say():
    table = abilities.table()
    assert f"\n{table}\n" in COMMANDS.read_text("utf-8"), "print it by: python -m docs.website.abilities"
    assert "| graph breaks by reason | no | yes | no | no | no |" in table
    assert "| effects of a function, refused without `--allow-effects` | yes | no | yes | yes | no |" in table


def test_the_exit_codes_are_those_of_the_tool():
    text = COMMANDS.read_text("utf-8")
    told = {int(code) for code in CODE.findall(text)}
    used = {int(code) for _, _, codes in COMMAND.findall(text) for code in codes.split(",")}
    raised = {error.exit_code for error in vars(errors).values() if hasattr(error, "exit_code")}
    assert raised | used <= told


def test_the_claims_are_those_of_the_tool():
    section = (ROOT / "docs" / "method.md").read_text("utf-8").partition("## What is measured")[2]
    assert re.findall(r"^\| (C\d) ", section, re.MULTILINE) == list(CLAIMS)


def test_the_glossary_defines_each_word_once_and_in_order():
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    sections = [re.findall(r"^\*\*(.+?)\*\*", part, re.MULTILINE) for part in text.split("\n## ")]
    words = [word for section in sections for word in section]
    assert len(words) == len(set(words)) <= 60
    assert all(section == sorted(section, key=str.lower) for section in sections)


def test_the_picture_is_a_picture():
    root = ET.parse(ROOT / "docs" / "house.svg").getroot()
    names = [element.text for element in root.iter() if element.get("class") == "name"]
    assert names[1:] == ["compare/", "static/", "dynamic/", "graphs/"]


@pytest.mark.parametrize(
    ("page", "head", "report"),
    [
        ("README.md", "| claim | verdict | effect", "reference"),
        ("docs/frameworks-claims.md", "| claim | our engines", "frameworks"),
        ("docs/models.md", "| claim | verdict | effect", "models"),
    ],
)
def test_the_verdicts_of_a_page_are_those_of_the_report_that_is_kept(page, head, report):
    def table(path):
        text = path.read_text("utf-8")
        return text[text.index(head) :].split("\n\n")[0]

    assert table(ROOT / page) == table(ROOT / "reports" / report / "report.md")
