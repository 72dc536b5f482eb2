"""Syntax trees: short functions that make them, uses of variables, and the tree of a function in memory.

Names that are made up hold a space or a dot, which no name of the user's does.

`uses` says which variables statements read before they set them (upward exposed uses), and which they set. It works on
statements without jumps except `raise`: `jumps.lower_jumps` has run.

`definition` finds the tree of a function in its file, or in the cell of its notebook, by its first line. The text is
compiled and compared with the function in memory: a file may have been edited after it was imported, and other text may
have been run under its name. It raises NotConvertedError where there is no tree that is certain.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import warnings
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import NamedTuple, TypeVar

OPERATORS = "static.convert"
"""The variable that holds the operators in converted code."""

GIVEN = "<given>"
"""The parameter of functions that the rewriting makes."""

N = TypeVar("N", bound=ast.AST)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def load(identifier: str) -> ast.Name:
    """Return a variable that is read."""
    return ast.Name(identifier, ast.Load())


def store(identifier: str) -> ast.Name:
    """Return a variable that is set."""
    return ast.Name(identifier, ast.Store())


def assign(identifier: str, value: ast.expr) -> ast.Assign:
    """Return `identifier = value`."""
    return ast.Assign([store(identifier)], value)


def operator(name: str, *args: ast.expr) -> ast.Call:
    """Return a call of one of the operators."""
    return ast.Call(ast.Attribute(load(OPERATORS), name, ast.Load()), list(args), [])


def is_operator(call: ast.Call) -> bool:
    """Whether a call is a call of an operator."""
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == OPERATORS


def negate(test: ast.expr) -> ast.expr:
    """Return `not test`."""
    return ast.UnaryOp(ast.Not(), test)


def either(tests: Sequence[ast.expr]) -> ast.expr:
    """Return `a or b or ...`."""
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), list(tests))


def parameters(*names: str) -> ast.arguments:
    """Return positional parameters of these names."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def thunk(value: ast.expr) -> ast.Lambda:
    """Return `lambda: value`."""
    return ast.Lambda(parameters(), value)


def function(name: str, args: ast.arguments, body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """Return a function without decorators or annotations."""
    return ast.FunctionDef(name, args, list(body) or [ast.Pass()], [], None)


def texts(names: Iterable[str]) -> ast.expr:
    """Return a tuple of string constants."""
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def at(new: N, old: ast.AST) -> N:
    """Give the new tree the place of an old one, except nodes that have places of their own.

    Of an old tree over several lines it takes the first line: for Python the line of a call is the line on which the
    called expression ends.
    """
    place = {name: value for name in old._attributes if (value := getattr(old, name, None)) is not None}
    if place.get("end_lineno") != place.get("lineno"):
        place |= {"end_lineno": place["lineno"], "end_col_offset": place["col_offset"]}
    todo: list[ast.AST] = [new]
    while todo:
        node = todo.pop()
        if hasattr(node, "lineno"):
            continue
        if "lineno" in node._attributes:
            vars(node).update(place)
        todo += ast.iter_child_nodes(node)
    return new


def copy_tree(node: N) -> N:
    """Return a copy of a tree."""
    return copy.deepcopy(node)


Names = frozenset[str]
NONE: Names = frozenset()


def scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of one scope, without the insides of functions and classes that it defines."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            todo += [*getattr(node, "decorator_list", []), *getattr(node, "bases", [])]
        else:
            todo += ast.iter_child_nodes(node)


def stored_names(nodes: Iterable[ast.AST]) -> Names:
    """Return the variables of this scope that statements set or delete."""
    inside = list(scope(nodes))
    return frozenset([name for node in inside for name in _names_set(node)]) - _bound_names(inside)


def _names_set(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(alias.asname or alias.name).split(".")[0] for alias in names]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def _bound_names(inside: Sequence[ast.AST]) -> Names:
    """Return the variables of comprehensions in a scope, unless the scope itself has them too."""
    targets = {id(n): n.id for node in inside if isinstance(node, COMPREHENSIONS) for n in _targets(node)}
    if not targets:
        return NONE
    outside = {n.id for n in inside if isinstance(n, ast.Name) and _is_set(n) and id(n) not in targets}
    return frozenset(targets.values()) - outside


def names_bound(node: ast.AST) -> set[str]:
    """Return the variables that a comprehension, or the parameters of a function, bind."""
    if isinstance(node, COMPREHENSIONS):
        return {name.id for name in _targets(node)}
    return {arg.arg for arg in ast.walk(node) if isinstance(arg, ast.arg)}


def _targets(node: ast.AST) -> Iterator[ast.Name]:
    for generator in node.generators:  # type: ignore[attr-defined]
        for name in ast.walk(generator.target):
            if isinstance(name, ast.Name) and _is_set(name):
                yield name


def _is_set(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def loaded_names(node: ast.AST) -> Names:
    """Return the variables that a statement or expression reads, including functions inside it."""
    names = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store):
            names.add(n.id)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            names.add(n.target.id)
    return frozenset(names)


class Uses(NamedTuple):
    """The variables that statements may read before they set them, and those that they set on every path."""

    reads: Names = NONE
    sure: Names = NONE

    def then(self, after: Uses) -> Uses:
        """Return the uses of statements followed by others."""
        return Uses(self.reads | (after.reads - self.sure), self.sure | after.sure)

    def before(self, live: Names) -> Names:
        """Return the variables that are read later at the start of the statements, given those at their end."""
        return (live - self.sure) | self.reads


def uses(statements: Sequence[ast.stmt]) -> Uses:
    """Return the uses of statements that run one after the other."""
    total = Uses()
    for statement in statements:
        cached = vars(statement).get("uses")  # each enclosing block asks for it again
        if cached is None:
            cached = vars(statement)["uses"] = _uses(statement)
        total = total.then(cached)
    return total


def _uses(statement: ast.stmt) -> Uses:
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            then, other = uses(body), uses(orelse)
            return Uses(loaded_names(test)).then(Uses(then.reads | other.reads, then.sure & other.sure))
        case ast.While(test=test, body=body):
            return Uses(loaded_names(test) | uses(body).reads)
        case ast.For(target=target, iter=iterable, body=body):
            inside = Uses(sure=stored_names([target])).then(uses(body)).reads
            return Uses(loaded_names(iterable) | inside | loaded_names(target) | loaded_names(until(statement)))
        case ast.With(items=items, body=body):
            entered = frozenset().union(*(loaded_names(item) for item in items))
            return Uses(entered, stored_names(items)).then(uses(body))
        case ast.FunctionDef(name=name):
            return Uses(loaded_names(statement), frozenset([name]))
        case ast.Assign(targets=targets):
            return Uses(loaded_names(statement), stored_names(targets))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            return Uses(loaded_names(statement), stored_names([target]))
    return Uses(loaded_names(statement))  # a try too, as no variable is surely set in it


def set_until(loop: ast.AST, test: ast.expr | None) -> None:
    """Attach the test to a for loop that ends the loop when it fails."""
    vars(loop)["until"] = test


def until(loop: ast.For) -> ast.expr:
    """Return the test attached to a for loop, asked before each round: the loop goes on while it holds."""
    return getattr(loop, "until", None) or ast.Constant(True)


Definition = ast.FunctionDef | ast.Lambda


class NotConvertedError(Exception):
    """A function is not converted; the text is the reason and the remedy: `reason; remedy`."""


class Definitions(NamedTuple):
    """The trees of a text's functions, and their codes, each by the line at which the code starts."""

    trees: dict[int, list[Definition]]
    codes: dict[int, list[CodeType]]

    def definition(self, code: CodeType) -> Definition | None:
        """Return the tree that compiles to this code, None if there is no certain one."""
        line = code.co_firstlineno
        if not any(_is_same(candidate, code) for candidate in self.codes.get(line, [])):
            return None
        matching = [tree for tree in self.trees.get(line, []) if _name(tree) == code.co_name]
        if len(matching) > 1:
            matching = [tree for tree in matching if _holds(tree, code)]
        return matching[0] if len(matching) == 1 else None


def definition(code: CodeType) -> Definition:
    """Return the tree of the function that has this code; it must not be changed. Raises NotConvertedError."""
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotConvertedError("it is a coroutine; write a function")
    file = code.co_filename
    tree = _read(file, code)
    if tree is None:
        linecache.checkcache(file)  # its cached text may be older than the function
        tree = _read(file, code)
    if tree is None:
        raise NotConvertedError(
            "it is not what the text of its file compiles to: the file was edited after it was imported, or a tool has "
            "rewritten the function, as pytest does where there is an assert; import the file again, or move the "
            "function to a file that no tool rewrites"
        )
    return tree


def _read(file: str, code: CodeType) -> Definition | None:
    text = "".join(linecache.getlines(file))
    if not text:
        raise NotConvertedError(f"there is no source of it under {file!r}; save it in a file, and import that")
    return _definitions(text, code.co_flags & FUTURE).definition(code)


FUTURE = 0x1000000
"""The flag of `from __future__ import annotations`, which a notebook cell has from an earlier cell."""


@functools.lru_cache(maxsize=16)  # files: their trees are many times as large as they
def _definitions(text: str, flags: int) -> Definitions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has shown them already
        try:
            module = ast.parse(text)
            top = compile(module, "<compared>", "exec", flags=flags, dont_inherit=True)
        except (SyntaxError, ValueError):  # a text that was edited since
            return Definitions({}, {})
    definitions = Definitions({}, {})
    for tree in ast.walk(module):
        if isinstance(tree, (ast.FunctionDef, ast.Lambda)):
            lines = [tree.lineno, *(decorator.lineno for decorator in getattr(tree, "decorator_list", []))]
            definitions.trees.setdefault(min(lines), []).append(tree)
    for code in _inside(top):
        definitions.codes.setdefault(code.co_firstlineno, []).append(code)
    return definitions


def _inner(code: CodeType) -> list[CodeType]:
    """Return the codes of the functions that a code makes."""
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _inside(code: CodeType) -> Iterator[CodeType]:
    """Yield the codes of functions inside a code, at any depth."""
    for inner in _inner(code):
        yield inner
        yield from _inside(inner)


def _is_same(code: CodeType, other: CodeType) -> bool:
    """Whether two codes are equal and at equal places, under whatever file name."""
    return (
        code == other
        and code.co_exceptiontable == other.co_exceptiontable
        and list(code.co_positions()) == list(other.co_positions())
        and all(map(_is_same, _inner(code), _inner(other)))
    )


def _name(tree: Definition) -> str:
    return "<lambda>" if isinstance(tree, ast.Lambda) else tree.name


def _holds(tree: Definition, code: CodeType) -> bool:
    """Whether a code's instructions cover exactly the body of this tree."""
    body = tree.body if isinstance(tree.body, ast.expr) else tree
    places = [p for p in code.co_positions() if p[0] and p[2] is not None and (p[1], p[3]) != (p[0], p[2])]
    if not places:  # Python was started without column numbers
        return False
    first, last = min(p[0::2] for p in places), max(p[1::2] for p in places)
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return (start, end) == (first, last)
