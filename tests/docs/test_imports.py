"""The layers: who may import whom, read from the source and seen in fresh processes."""

import ast
import graphlib
import json
import subprocess
import sys
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
}
# optree is written on top of typing_extensions, and loads nothing else.
LIGHT = {"numpy", "optree", "typing_extensions"}

PROBE = """
import importlib, json, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({module.partition(".")[0] for module in set(sys.modules) - before})))
"""


def loaded(*modules: str) -> set[str]:
    """The top-level packages beyond the standard library that a new process has after these imports."""
    command = [sys.executable, "-W", "error", "-c", PROBE, *modules]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout)) - sys.stdlib_module_names


def imported(source: str) -> set[str]:
    """The top-level packages that a module imports by a statement anywhere in it, relative imports aside."""
    nodes = list(ast.walk(ast.parse(source)))
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
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative  # so that the scan above misses nothing


def modules_imported(package: str) -> dict[str, set[str]]:
    """Each module of a package, and those of it that it imports by a statement anywhere in it, types aside."""
    folder = ROOT / package
    sources = [*folder.rglob("*.py"), *folder.rglob("*.pyi")]  # the latter of compiled modules
    paths = {path.relative_to(ROOT).with_suffix(""): path for path in sources}
    files = {".".join(name.parts).removesuffix(".__init__"): path for name, path in paths.items()}
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        tree = ast.parse(path.read_text("utf-8"))
        typing = {inner for node in ast.walk(tree) if _is_for_types(node) for inner in ast.walk(node)}
        nodes = [node for node in ast.walk(tree) if node not in typing]
        plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        froms = [(str(n.module), a.name) for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names]
        named = {f"{module}.{name}" if f"{module}.{name}" in files else module for module, name in froms}
        found[name] = (plain | named) & files.keys() - {name}
    return found


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize(
    ("package", "importer", "used"),
    [("compare", "compare.run.settings", "compare.run.job"), ("graphs", "graphs.ops.control", "graphs.cost")],
)
def test_no_modules_of_a_package_import_each_other_in_a_circle(package, importer, used):
    imports = modules_imported(package)
    assert used in imports[importer]
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, with the circle


def test_graphs_loads_only_itself_and_numpy():
    assert loaded("graphs") - LIGHT == {"graphs"}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_loads_the_op_library_and_no_other_engine(engine):
    assert loaded(engine) - LIGHT == {"graphs", engine}


def test_both_engines_load_side_by_side():
    assert loaded(*ENGINES) - LIGHT == {"graphs", *ENGINES}


def test_compare_loads_its_tools_only_when_they_are_used():
    assert not loaded("compare") & {"matplotlib", "networkx", "rich", "jinja2", "scipy", "pytest"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_that_it_is_typed(package):
    assert (ROOT / package / "py.typed").exists()


# Circles ----------------------------------------------------------------------------------------------------------

STATIC_ROOMS = (
    "trace",
    "passes",
    "memory",
    "codegen",
    "backends",
    "call",
)  # in the order in which a graph goes through them
TOOLS = {"static.clock", "static.rebuild"}  # of every room


def modules_of(package: str) -> dict[str, Path]:
    """The files of a package by the names of their modules."""
    parts = {path: path.relative_to(ROOT).with_suffix("").parts for path in sorted((ROOT / package).rglob("*.py"))}
    return {".".join(part for part in found if part != "__init__"): path for path, found in parts.items()}


def run_at_import(tree: ast.Module) -> list[ast.stmt]:
    """The statements that run when a module is imported: not in functions, nor for a type checker."""
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        found += [node] if isinstance(node, ast.stmt) else []
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    return found


def arrows(modules: dict[str, Path]) -> dict[str, set[str]]:
    """For each module those of the same package that its statements import."""
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets: set[str] = set()
        for node in run_at_import(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                parts = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                targets |= {part if part in modules else str(node.module) for part in parts.values()}
            elif isinstance(node, ast.Import):
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


@pytest.mark.parametrize("package", ["static"])
def test_no_import_inside_a_function_closes_a_circle(package):
    imports = modules_imported(package)
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, with the circle


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_do_not_import_in_a_circle(package):
    assert in_circles(arrows(modules_of(package))) == set()


def test_a_circle_is_seen(tmp_path):
    texts = {"a": "import b", "b": "from c import x", "c": "if True:\n    import a", "e": "import d"}
    texts["d"] = "import a\ndef f():\n    import e\nif TYPE_CHECKING:\n    import e\n"
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    assert in_circles(arrows({name: tmp_path / f"{name}.py" for name in texts})) == {"a", "b", "c"}


def test_functions_of_dynamic_import_in_a_circle_once():
    imports = modules_imported("dynamic")
    # Tensor is at the bottom, and its method `backward` calls the function of that name, at the top.
    assert "dynamic.gradients" in imports["dynamic.tensor"]
    assert in_circles(imports | {"dynamic.tensor": imports["dynamic.tensor"] - {"dynamic.gradients"}}) == set()


def floor(module: str) -> int:
    """How late a graph comes to a module of static: its tools come first, and last what has no room."""
    room = module.removeprefix("static.").partition(".")[0]
    if module in TOOLS:
        return -1
    return STATIC_ROOMS.index(room) if room in STATIC_ROOMS else len(STATIC_ROOMS)


def test_a_graph_goes_forward_through_the_rooms_of_static():
    imports = arrows(modules_of("static"))
    assert {module.split(".")[1] for module in imports if module.count(".") > 1} == set(STATIC_ROOMS)
    assert not {(one, other) for one in imports for other in imports[one] if floor(other) > floor(one)}
