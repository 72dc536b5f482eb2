"""The layers: who may import whom, read from the source and seen in fresh processes."""

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("static", "dynamic")
PACKAGES = ("graphs", *ENGINES, "compare")
EVERYTHING = {*PACKAGES, "benchmarks", "tests"}
MAY_IMPORT = {
    "graphs": {"graphs"},
    "static": {"static", "graphs"},
    "dynamic": {"dynamic", "graphs"},
    "compare": set(PACKAGES),
    "benchmarks": EVERYTHING - {"tests"},
    "examples": set(PACKAGES),
    "docs": {"compare"},
}
# optree is written on top of typing_extensions, and loads nothing else.
LIGHT = {"numpy", "optree", "typing_extensions", "_xxsubinterpreters"}  # the last is Python's own, of 3.11 and 3.12

PROBE = """
import importlib, json, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({module.partition(".")[0] for module in set(sys.modules) - before})))
"""


TOOLS = {"matplotlib", "networkx", "rich", "jinja2", "scipy", "pytest"}


def loaded(*modules: str) -> set[str]:
    """The top-level packages beyond the standard library that a new process has after these imports."""
    command = [sys.executable, "-W", "error", "-c", PROBE, *modules]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout)) - sys.stdlib_module_names


@functools.cache
def import_statements(source: str) -> list[ast.Import | ast.ImportFrom]:
    """Those anywhere in a module; several tests read each file."""
    return [node for node in statements(ast.parse(source)) if isinstance(node, (ast.Import, ast.ImportFrom))]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node: there are far fewer of them than of expressions."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, block, ()):
            yield statement
            yield from statements(statement)


def imported(source: str) -> set[str]:
    """The top-level packages that a module imports by a statement anywhere in it, relative imports aside."""
    nodes = import_statements(source)
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_one_way(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    wrong = {
        str(path.relative_to(ROOT)): sorted(layers)
        for path in files
        if (layers := (imported(path.read_text("utf-8")) & EVERYTHING) - MAY_IMPORT[folder])
    }
    assert not wrong


def test_the_scan_sees_every_form_of_import():
    source = "import a.b, c as d\ndef f():\n    from e.f import g\n    from . import h\n"
    assert imported(source) == {"a", "c", "e"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_by_its_full_name_only(package):
    relative = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in import_statements(path.read_text("utf-8"))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative  # so that the scan above misses nothing


def test_completion_shows_the_public_names_of_compare_and_nothing_else():
    found = [name for name in dir(importlib.import_module("compare")) if not name.startswith("__")]
    assert found == ["advise", "compare"]


def test_graphs_loads_only_itself_and_numpy():
    assert loaded("graphs") - LIGHT == {"graphs"}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_loads_the_op_library_and_no_other_engine(engine):
    assert loaded(engine) - LIGHT == {"graphs", engine}


def test_both_engines_load_side_by_side():
    assert loaded(*ENGINES) - LIGHT == {"graphs", *ENGINES}


def test_compare_loads_its_tools_only_when_they_are_used():
    assert not loaded("compare") & TOOLS


def test_a_worker_loads_no_tool_before_its_job_needs_one():
    assert not loaded("compare.run.worker", "compare.own.workers") & TOOLS


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_that_it_is_typed(package):
    assert (ROOT / package / "py.typed").exists()


# Circles ----------------------------------------------------------------------------------------------------------

FLOORS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["graphduel"][
    "floors"
]
"""For each package its rooms, from the ground up."""


def modules_of(package: str) -> dict[str, Path]:
    """The files of a package, those that describe compiled modules among them, by the names of their modules."""
    stubs = [path for path in (ROOT / package).rglob("*.pyi") if not path.with_suffix(".py").exists()]
    files = sorted([*(ROOT / package).rglob("*.py"), *stubs])
    parts = {path: path.relative_to(ROOT).with_suffix("").parts for path in files}
    return {".".join(part for part in found if part != "__init__"): path for path, found in parts.items()}


def arrows(modules: dict[str, Path]) -> dict[str, set[str]]:
    """For each module those of the same package that a statement anywhere in it imports: in functions, for types."""
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets: set[str] = set()
        for node in import_statements(path.read_text("utf-8")):
            if isinstance(node, ast.ImportFrom):
                parts = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                targets |= {part if part in modules else str(node.module) for part in parts.values()}
            else:
                targets |= {alias.name for alias in node.names}
        found[name] = targets & modules.keys() - {name}
    return found


def in_circles(imports: dict[str, set[str]]) -> set[str]:
    """The modules that import themselves by way of others: strongly connected components of more than one."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = imports[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    return {name for name in imports if name in reached(name)}


@pytest.mark.parametrize(
    ("package", "importer", "used"),
    [
        ("compare", "compare.plans.settings", "compare.records.job"),
        ("dynamic", "dynamic.tapes", "dynamic.fast"),  # in a function
        ("graphs", "graphs.ops.control", "graphs.ir"),
        ("static", "static.call.executable", "static.codegen.kernels"),
    ],
)
def test_no_import_closes_a_circle(package, importer, used):
    imports = arrows(modules_of(package))
    assert used in imports[importer]
    assert in_circles(imports) == set()


def test_a_circle_of_any_kind_is_seen(tmp_path):
    texts = {"a": "import b", "b": "from c import x", "c": "if True:\n    import a"}
    texts |= {"d": "import a\ndef f():\n    import e", "e": "import d"}
    texts |= {"f": "import a\nif TYPE_CHECKING:\n    import g", "g": "import f\nimport h", "h": "import a"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    assert in_circles(arrows({name: tmp_path / f"{name}.py" for name in texts})) == {*"abcdefg"}


def floor(module: str) -> int:
    """The floor that a module stands on: that of its room, or above them all where it has none."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return FLOORS[package].index(room) if room in FLOORS[package] else len(FLOORS[package])


def going_up(imports: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The arrows from a module to one of a later room."""
    return {(module, used) for module in imports for used in imports[module] if floor(used) > floor(module)}


@pytest.mark.parametrize("package", FLOORS)
def test_a_room_imports_only_what_stands_before_it(package):
    imports = arrows(modules_of(package))
    folders = {module.split(".")[1] for module in imports if module.count(".") > 1}
    assert folders <= set(FLOORS[package])
    assert {
        room for room in FLOORS[package] if not any(floor(f"{package}.{room}") == floor(m) for m in imports)
    } == set()
    assert going_up(imports) == set()


def test_an_arrow_that_goes_up_is_seen():
    imports = {"compare.records.record": {"compare.claims.base", "compare.errors"}, "compare.cli": {"compare.records"}}
    assert going_up(imports) == {("compare.records.record", "compare.claims.base")}


def test_contributing_shows_the_floors_that_the_test_holds():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for package, rooms in FLOORS.items():
        assert f"`{package}/`: {' · '.join(rooms)}" in " ".join(text.split())


# Names of their own -------------------------------------------------------------------------------------------------


NO_SECRETS = {"_asdict", "_fields", "_make", "_replace", "_getframe"}
"""What Python offers to everyone under such a name."""


def private(name: str) -> bool:
    """Whether a name says that it is nobody else's."""
    return name.startswith("_") and not name.startswith("__") and name not in NO_SECRETS


def named(text: str) -> set[str]:
    """The private names that a file gives: to functions and classes, on lines of their own, and to parts of `self`."""
    given = re.findall(r"(?:def |class |self\.|^\s*)(_[a-z]\w*)", text, re.MULTILINE)
    return {name for name in given if private(name)}


def reaching_in(text: str, others: set[str]) -> set[str]:
    """The private names of others that a file imports, or reads of an object that is not its own."""
    own, reached = named(text), set[str]()
    if not re.search(r"\W_[a-z]", text):
        return reached
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            reached |= {node.attr} - own
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in ("graphs", *ENGINES):
            reached |= {alias.name for alias in node.names if private(alias.name)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("attr"):
            reached |= {arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
    return reached & others


def test_compare_uses_no_private_name_of_an_engine():
    packages = ("graphs", *ENGINES)
    texts = [path.read_text("utf-8") for package in packages for path in (ROOT / package).rglob("*.py")]
    others = set[str]().union(*map(named, texts))
    assert {"_data", "_edge", "_bindings"} <= others
    files = sorted((ROOT / "compare").rglob("*.py"))
    wrong = {str(file.relative_to(ROOT)): reaching_in(file.read_text("utf-8"), others) for file in files}
    assert {file: names for file, names in wrong.items() if names} == {}


def test_a_private_name_of_an_engine_is_seen_in_every_form():
    others = {"_data", "_edge", "_program", "_own"}
    source = "from static.call.jit import _program\nx._data\ngetattr(x, '_edge')\nself._own = 1\nother._own\n"
    assert reaching_in(source, others) == {"_data", "_edge", "_program"}
