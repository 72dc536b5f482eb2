"""A name of a class means one thing in all four packages, and a name of a value says its type or its role."""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("graphs", "static", "dynamic", "compare")
# Public in two packages: the nodes of graph and tape. `Mode` is how a thread records, and how a framework runs; an
# `Optimizer` is a pair of pure functions, and the class that keeps their state. A `Buffer` is an array of generated
# code, and PyTorch's name for a tensor that a module keeps.
# `Size` is that of a record, and PyTorch's word for a shape.
TWICE = {"Buffer", "Mode", "Node", "Optimizer", "Size"}
# A compiler with a language of its own: a value, a loop and a kernel of its loop IR are none of a graph's.
OF_ITS_OWN = ROOT / "static" / "native"
# Written as people write models for PyTorch, each by itself: they say `Block` and `Layer` of what is inside.
MODELS = ROOT / "compare" / "workloads" / "models"
# What any value may be called says neither what it is nor what it is for: no package uses these names.
VAGUE = {"found", "one", "given", "known"}
# Words that end as participles do, and are nouns or verbs; and irregular participles that no verb in the imperative is.
VERBS = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
PARTICIPLES = {
    *("begun", "born", "bound", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven", "fallen"),
    *("fed", "found", "frozen", "given", "gone", "grown", "heard", "held", "hidden", "kept", "known", "laid", "left"),
    *("lost", "made", "meant", "met", "of", "paid", "rebuilt", "rewritten", "risen", "said", "seen", "sent", "shown"),
    *("spent", "stood", "taken", "taught", "thrown", "told", "unknown", "woven", "won", "worn", "written"),
}
# Public names, which programs of users have, and PyTorch's.
PUBLIC = {
    "batched",  # dynamic.batched
    "converted",  # static.converted
    "Jitted",  # static.Jitted
    *("searchsorted", "_searchsorted"),  # numpy.searchsorted
    "unused",  # torch.jit.unused
}
# Written as their authors would write them, and named in the records of a run.
SUBJECTS = tuple(ROOT / "compare" / "workloads" / folder for folder in ("faults", "models", "programs"))


def classes(source: str) -> list[str]:
    """The classes that a module defines for others: at its top, and not private."""
    return re.findall(r"(?m)^class ([^\W_]\w*)", source)


def shared(files: Iterable[Path]) -> set[str]:
    """The names that classes of several modules have."""
    counted = Counter(name for path in files for name in classes(path.read_text("utf-8")))
    return {name for name, count in counted.items() if count > 1}


def vague(source: str) -> list[tuple[int, str]]:
    """Where a module gives a variable, parameter, attribute, function or class such a name: line and name."""
    tree = ast.parse(source)
    return sorted((node.lineno, name) for node in ast.walk(tree) for name in _defined(node) if name in VAGUE)


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name for alias in aliases]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
            return [name]
    return []


def participles(source: str) -> list[tuple[int, str]]:
    """Functions and classes, nested ones too, whose name is a participle alone: line and name. Methods do not count."""
    tree = ast.parse(source)
    methods = {id(part) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body}
    definitions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return [(n.lineno, n.name) for n in definitions if id(n) not in methods and _is_participle(n.name)]


def _is_participle(name: str) -> bool:
    word = name.strip("_")
    word = word[:1].lower() + word[1:]
    return word in PARTICIPLES or (re.fullmatch(r"[a-z]{2,}ed", word) is not None and word not in VERBS)


def test_no_two_modules_have_classes_of_one_name():
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    native = set(OF_ITS_OWN.rglob("*.py"))
    assert shared(files - native - set(MODELS.glob("[!_]*.py"))) == TWICE
    assert shared(native) == set()


def test_classes_inside_others_and_private_ones_do_not_count():
    assert classes("class A:\n    class B: ...\nclass _C: ...\nif True:\n    class D: ...\n") == ["A"]


def test_names_say_type_or_role():
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    places = {str(path.relative_to(ROOT)): vague(path.read_text("utf-8")) for path in files}
    assert {path: lines for path, lines in places.items() if lines} == {}


def test_vague_names_are_seen_wherever_they_are_defined():
    source = """
import numpy as one
def known(given, *, found=0): ...
class found: ...
try:
    one, (given, *known) = 1, (2, 3)
except OSError as found:
    self.known = [one for one in found if (given := one)]
match x:
    case [*known, given] as one: ...
"""
    counts = Counter(name for _, name in vague(source))
    assert counts == {"one": 4, "known": 4, "given": 4, "found": 3}
    assert vague("x.found(one=given)\nfoundation = known[one]") == []


def test_no_function_and_no_class_is_called_by_a_participle_alone():
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    ours = sorted(path for path in files if not any(folder in path.parents for folder in SUBJECTS))
    places = {str(path.relative_to(ROOT)): participles(path.read_text("utf-8")) for path in ours}
    bare = {path: [place for place in lines if place[1] not in PUBLIC] for path, lines in places.items()}
    assert {path: lines for path, lines in bare.items() if lines} == {}


def test_participles_are_seen_at_any_depth_and_with_any_underscores():
    source = """
def padded(x):
    def _told(): ...
    class Held: ...
def pad(x): ...
def seed(x): ...
def padded_shape(x): ...
class A:
    def held(self):
        def drawn(): ...
"""
    assert participles(source) == [(2, "padded"), (3, "_told"), (4, "Held"), (10, "drawn")]


def test_files_that_rooms_and_c_name_are_there():
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in {".py", ".c", ".h"}]
    names = {path.name for path in files}
    readers = [path for path in files if path.name == "__init__.py" or path.suffix != ".py"]
    named = {(str(path.relative_to(ROOT)), name) for path in readers for name in named_files(path.read_text("utf-8"))}
    assert sorted(pair for pair in named if pair[1] not in names) == []


def named_files(text: str) -> set[str]:
    """The names of Python and C files in a text, without headers: those of the system lie elsewhere."""
    return set(re.findall(r"\b([a-z_]+\.(?:py|c))\b(?!\()", text))
