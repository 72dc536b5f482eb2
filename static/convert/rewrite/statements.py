"""Statements rewritten: a block under a test becomes functions, which are passed to an operator with its variables.

if test:            def <if 1>(): nonlocal y; y = x * 2
    y = x * 2       def <else 1>(): nonlocal y; y = x - 2
else:         ->    def <set 1>(values): nonlocal y; (y,) = values
    y = x - 2       static.convert.branch(test, <if 1>, <else 1>, variables(("y",), lambda: (y,), <set 1>), ("y",))
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from static.convert.rewrite import syntax
from static.convert.rewrite.expressions import Expressions
from static.convert.rewrite.syntax import (
    GIVEN,
    Names,
    NotConvertedError,
    assign,
    at,
    function,
    load,
    loaded_names,
    operator,
    scope,
    store,
    stored_names,
    thunk,
    until,
    uses,
)

Body = list[ast.stmt]
Rewrite = Callable[[ast.FunctionDef, Names], ast.FunctionDef]
_BLOCKS = (ast.If, ast.While, ast.For)
_OF_CLASSES = ("property", "staticmethod", "classmethod")


class Around:
    """Facts about a function that the rewriting of its statements needs.

    `outer` are its global and nonlocal variables, `globals` the global ones among them. `lasting` are variables that
    functions inside it read whenever they run, `lent` variables that these set. Blocks may set the variables in
    `merged`; those in `guarded` are read through an operator; expressions set those in `assigned` by `:=`.
    """

    def __init__(self, body: Sequence[ast.stmt], enclosing: Names) -> None:
        declared = [n for n in scope(body) if isinstance(n, (ast.Global, ast.Nonlocal))]
        self.globals: Names = frozenset(name for n in declared if isinstance(n, ast.Global) for name in n.names)
        self.outer: Names = frozenset(name for n in declared for name in n.names)
        inside = [n for n in scope(body) if isinstance(n, (*syntax.FUNCTIONS, ast.GeneratorExp, ast.ClassDef))]
        self.lasting: Names = frozenset().union(*map(loaded_names, inside)) | self.outer
        mine = stored_names(body) - self.outer
        self.lent: Names = frozenset(name for n in inside for name in _nonlocals(n) if name in mine)
        self.assigned: Names = frozenset(n.target.id for n in scope(body) if isinstance(n, ast.NamedExpr))
        self.merged: Names = self.assigned | stored_names(n for n in scope(body) if isinstance(n, _BLOCKS))
        self.guarded: Names = self.merged | enclosing

    def shared(self, names: Iterable[str]) -> Body:
        """Return the declarations that let a function inside set these variables."""
        wanted = frozenset(names)
        kinds = ((ast.Global, wanted & self.globals), (ast.Nonlocal, wanted - self.globals))
        return [kind(sorted(some)) for kind, some in kinds if some]


def _nonlocals(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Nonlocal):
            yield from node.names


def _only_defines(statement: ast.stmt) -> bool:
    """Whether a statement of a class body only gives a name to something."""
    match statement:
        case ast.FunctionDef(decorator_list=decorators, args=args):
            parts: list[ast.AST] = [args]
            is_known = all(
                isinstance(decorator, ast.Attribute) or getattr(decorator, "id", "") in _OF_CLASSES
                for decorator in decorators
            )
        case ast.Assign() | ast.AnnAssign() | ast.Expr():
            parts, is_known = [statement], True
        case _:
            return isinstance(statement, ast.Pass)
    nodes_inside = [n for part in parts for n in ast.walk(part)]
    return is_known and not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Subscript)) for n in nodes_inside)


def _guarded_body(statement: ast.stmt, body: Body) -> Body:
    """Return a body, wrapped to tell that this statement may catch its errors."""
    return [at(ast.With([ast.withitem(operator("catching"))], body), statement)]


class Statements:
    """Rewrites the statements of one function, without jumps by now; `rewrite` converts functions inside it."""

    def __init__(self, around: Around, rewrite: Rewrite) -> None:
        self._around, self._rewrite = around, rewrite
        self._expressions = Expressions(around.guarded, around.assigned)
        self._made = 0

    def block(self, statements: Sequence[ast.stmt], after: Names) -> Body:
        """Return these statements rewritten; the variables `after` are read after them."""
        live, lives = after, []
        for statement in reversed(statements):
            lives.append(live)
            live = uses([statement]).before(live)
        out: Body = []
        for statement, read_later in zip(statements, reversed(lives), strict=True):
            out += [at(new, statement) for new in self._statement(statement, read_later)]
        return out

    def returned(self, last: ast.Return) -> ast.stmt:
        """Return the statement that a function ends with."""
        return at(ast.Return(operator("returned", self._expressions(last.value or ast.Constant(None)))), last)

    def _statement(self, statement: ast.stmt, after: Names) -> Body:
        match statement:
            case ast.If():
                return self._if(statement, after)
            case ast.While() | ast.For():
                return self._loop(statement, after)
            case ast.With() | ast.Try():
                return self._guarded_block(statement, after)
            case ast.FunctionDef():
                return self._function(statement)
            case ast.Assign() | ast.AnnAssign():
                return self._rewrite_assignment(statement)
            case ast.AugAssign():
                return self._rewrite_augmented(statement)
            case ast.Delete(targets=targets):
                return [new for target in targets for new in self._delete(target)]
            case ast.Assert():
                return self._rewrite_assert(statement)
        return self._plain(statement)

    def _plain(self, statement: ast.stmt) -> Body:
        """Return a statement in which only expressions are rewritten."""
        if isinstance(statement, (ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef)):
            raise NotConvertedError("it is a coroutine, or holds one; write a function")
        for field, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, field, self._expressions(value))
        if isinstance(statement, ast.Raise) and statement.exc:
            statement.exc = operator("raised", statement.exc)
        if isinstance(statement, ast.ClassDef) and not all(map(_only_defines, statement.body)):
            return [ast.Expr(operator("class_body", ast.Constant(statement.name))), statement]
        return [] if isinstance(statement, (ast.Global, ast.Nonlocal)) else [statement]

    def _name(self, what: str) -> str:
        return f"<{what} {self._made}>"

    # Blocks --------------------------------------------------------------------------------------------------

    def _variables(self, names: Sequence[str]) -> tuple[ast.stmt, ast.expr]:
        """Return the function that sets these variables, and the operators' handle on the variables."""
        put = self._name("set")
        each = ast.Tuple([store(name) for name in names], ast.Store())
        body: Body = [*self._around.shared(names), ast.Assign([each], load(GIVEN))] if names else []
        get = thunk(ast.Tuple([load(name) for name in names], ast.Load()))
        lent = syntax.texts(name for name in names if name in self._around.lent | self._around.assigned)
        return function(put, syntax.parameters(GIVEN), body), operator(
            "variables", syntax.texts(names), get, load(put), lent
        )

    def _if(self, statement: ast.If, after: Names) -> Body:
        self._made += 1
        then, otherwise = self._name("if"), self._name("else")
        names = sorted(stored_names([*statement.body, *statement.orelse]))
        put, variables = self._variables(names)
        test = self._expressions(statement.test)
        shared = self._around.shared
        live = [name for name in names if name in after | self._around.lasting]
        return [
            put,
            function(then, syntax.parameters(), shared(names) + self.block(statement.body, after)),
            function(otherwise, syntax.parameters(), shared(names) + self.block(statement.orelse, after)),
            ast.Expr(operator("branch", test, load(then), load(otherwise), variables, syntax.texts(live))),
        ]

    def _loop(self, loop: ast.While | ast.For, after: Names) -> Body:
        self._made += 1
        body_name = self._name("while" if isinstance(loop, ast.While) else "for")
        changed = stored_names([loop])
        reads = uses([loop]).reads
        carried = sorted(changed & (after | reads | self._around.lasting))
        put, variables = self._variables(carried)
        inside = after | reads
        shared = self._around.shared(changed)
        if isinstance(loop, ast.While):
            test = thunk(self._expressions(loop.test))
            body = function(body_name, syntax.parameters(), shared + self.block(loop.body, inside))
            return [put, body, ast.Expr(operator("while_loop", test, load(body_name), variables))]
        set_target = self.block([ast.Assign([loop.target], load(GIVEN))], inside)
        test = thunk(self._expressions(until(loop)))
        iterable = self._expressions(loop.iter)
        body = function(body_name, syntax.parameters(GIVEN), shared + set_target + self.block(loop.body, inside))
        return [put, body, ast.Expr(operator("for_loop", iterable, test, load(body_name), variables))]

    def _guarded_block(self, statement: ast.With | ast.Try, after: Names) -> Body:
        if isinstance(statement, ast.With):
            entered: Body = []
            for item in statement.items:
                item.context_expr = operator("managed", self._expressions(item.context_expr))
                if item.optional_vars is not None and not isinstance(item.optional_vars, ast.Name):
                    self._made += 1
                    holder = self._name("entered")
                    entered += self._store(item.optional_vars, load(holder))
                    item.optional_vars = store(holder)
            body = self.block(statement.body, after)
            statement.body = [*(at(new, statement) for new in entered), *_guarded_body(statement, body)]
            return [at(statement, statement)]
        every = after | loaded_names(statement)  # an exception may end any part of it
        outside, self._expressions.tried = self._expressions.tried, bool(statement.handlers)
        body = self.block(statement.body, every)
        statement.body = _guarded_body(statement, body) if statement.handlers else body
        self._expressions.tried = outside
        statement.orelse = self.block(statement.orelse, every)
        statement.finalbody = self.block(statement.finalbody, every)
        for handler in statement.handlers:
            handler.type = handler.type and self._expressions(handler.type)
            handler.body = self.block(handler.body, every)
        names = [handler.name for handler in statement.handlers if handler.name]
        return [statement, *(self._unset(name) for name in names if name in self._around.merged)]

    def _function(self, statement: ast.FunctionDef) -> Body:
        """Rewrite a function inside, which is converted with the one around it, unless it is a generator."""
        decorators = [self._expressions(decorator) for decorator in statement.decorator_list]
        if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in scope(statement.body)):
            return [statement]
        new = self._rewrite(statement, self._around.guarded)
        new.args = self._expressions.arguments(new.args)
        new.decorator_list = [*decorators, ast.Attribute(load(syntax.OPERATORS), "converted", ast.Load())]
        return [new]

    def _rewrite_assert(self, statement: ast.Assert) -> Body:
        message = self._expressions.later(statement.msg or ast.Constant(None))
        return [ast.Expr(operator("asserted", self._expressions(statement.test), message))]

    # Writes --------------------------------------------------------------------------------------------------

    def _unset(self, name: str) -> ast.stmt:
        return assign(name, operator("unset", ast.Constant(name)))

    def _rewrite_assignment(self, statement: ast.Assign | ast.AnnAssign) -> Body:
        if statement.value is None:
            return []
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        value = self._expressions(statement.value)
        if all(isinstance(target, ast.Name) for target in targets):
            return [ast.Assign([*targets], value)]
        self._made += 1
        holder = self._name("value")
        return [assign(holder, value), *(new for target in targets for new in self._store(target, load(holder)))]

    def _store(self, target: ast.expr, value: ast.expr) -> Body:
        """Return the statements that store a value in a target."""
        match target:
            case ast.Attribute(value=owner, attr=attribute):
                return [ast.Expr(operator("set_attribute", self._expressions(owner), ast.Constant(attribute), value))]
            case ast.Subscript(value=owner, slice=key):
                place = [self._expressions(owner), self._expressions.index(key)]
                return [ast.Expr(operator("set_item", *place, value))]
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                return self._unpack(targets, value)
        return [ast.Assign([target], value)]

    def _unpack(self, targets: Sequence[ast.expr], value: ast.expr) -> Body:
        self._made += 1
        parts = [f"{self._name('part')} {i}" for i in range(len(targets))]
        stars = [isinstance(target, ast.Starred) for target in targets]
        each = [ast.Starred(store(p), ast.Store()) if star else store(p) for p, star in zip(parts, stars, strict=True)]
        out: Body = [ast.Assign([ast.Tuple(list(each), ast.Store())], operator("iterated", value))]
        for target, part, star in zip(targets, parts, stars, strict=True):
            item = operator("made", load(part)) if star else load(part)
            out += self._store(target.value if isinstance(target, ast.Starred) else target, item)
        return out

    def _rewrite_augmented(self, statement: ast.AugAssign) -> Body:
        """Rewrite `a += b`; the owner of an item or attribute is evaluated once."""
        op = ast.Constant(type(statement.op).__name__)
        value = self._expressions(statement.value)
        target = statement.target
        if isinstance(target, ast.Name):
            before = self._expressions(load(target.id))
            return [ast.Assign([target], operator("augmented", op, before, value))]
        self._made += 1
        owner, place = self._name("owner"), self._name("place")
        out: Body = [assign(owner, self._expressions(target.value))]
        if isinstance(target, ast.Attribute):
            key = ast.Constant(target.attr)
            new = operator("augmented", op, operator("attribute", load(owner), key), value)
            return [*out, ast.Expr(operator("set_attribute", load(owner), key, new))]
        out.append(assign(place, self._expressions.index(target.slice)))
        part = operator("item", load(owner), load(place))
        return [*out, ast.Expr(operator("augmented_item", op, load(owner), load(place), part, value))]

    def _delete(self, target: ast.expr) -> Body:
        match target:
            case ast.Subscript(value=owner, slice=key):
                return [ast.Expr(operator("delete_item", self._expressions(owner), self._expressions.index(key)))]
            case ast.Attribute(value=owner, attr=attribute):
                return [ast.Expr(operator("delete_attribute", self._expressions(owner), ast.Constant(attribute)))]
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                return [new for part in targets for new in self._delete(part)]
            case ast.Name(id=name) if name in self._around.merged:
                return [self._unset(name)]
        return [ast.Delete([target])]
