"""Jumps lowered: `return`, `break` and `continue` become flags that later statements test.

Afterwards a function ends with its only `return`, no loop has an `else`, and `match` on constants is `if`. A `for`
carries the test that ends it early as its attribute `until`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from static.convert.rewrite.syntax import (
    NotConvertedError,
    assign,
    at,
    copy_tree,
    either,
    load,
    negate,
    operator,
    set_until,
)

RETURNED, RESULT = "is returned", "result of the function"
Body = list[ast.stmt]


class Flags(NamedTuple):
    """The names of the flags (broken, skipped) of the loop around a statement."""

    broken: str = ""
    skipped: str = ""


def _leaving(statements: Sequence[ast.stmt]) -> set[type[ast.stmt]]:
    """Return which of return, break and continue leave these statements."""
    return set().union(*(_jumps_out_of(statement) for statement in statements))


def _jumps_out_of(statement: ast.stmt) -> set[type[ast.stmt]]:
    match statement:
        case ast.Return() | ast.Break() | ast.Continue():
            return {type(statement)}
        case ast.For(body=body, orelse=orelse) | ast.While(body=body, orelse=orelse):
            return (_leaving(body) & {ast.Return}) | _leaving(orelse)
        case ast.If(body=body, orelse=orelse):
            return _leaving([*body, *orelse])
        case ast.With(body=body):
            return _leaving(body)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
            return _leaving([*body, *(s for handler in handlers for s in handler.body), *orelse, *last])
        case ast.Match(cases=cases):
            return _leaving([s for case in cases for s in case.body])
    return set()


def _never_ends(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements after these are never reached."""
    return any(_is_end(statement) for statement in statements)


def _is_end(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
            return True
        case ast.If(body=body, orelse=orelse):
            return _never_ends(body) and _never_ends(orelse)
        case ast.While(test=ast.Constant(value=value), body=body):
            return bool(value) and ast.Break not in _leaving(body)
    return False  # also a with statement: it may swallow an exception


def lower_jumps(body: Sequence[ast.stmt]) -> tuple[Body, ast.Return]:
    """Return the statements of a function without jumps, and the return that it ends with."""
    if not _never_ends(body):
        body = [*body, at(ast.Return(ast.Constant(None)), body[-1])]
    last = body[-1]
    if isinstance(last, ast.Return) and ast.Return not in _leaving(body[:-1]):
        return _Lowering().block(body[:-1], Flags()), last
    start = [assign(RETURNED, ast.Constant(False)), assign(RESULT, operator("unset", ast.Constant("")))]
    end = ast.Return(load(RESULT))
    return [*(at(s, body[0]) for s in start), *_Lowering().block(body, Flags())], at(end, last)


class _Lowering:
    def __init__(self) -> None:
        self._made = 0

    def _name(self, what: str) -> str:
        self._made += 1
        return f"{what} {self._made}"

    def block(self, statements: Sequence[ast.stmt], loop: Flags) -> Body:
        """Return statements without jumps; a statement after a possible jump runs unless a flag is set."""
        out: Body = []
        for i, statement in enumerate(statements):
            rest = list(statements[i + 1 :])
            jump = self._jump(statement, loop)
            if jump:
                return [*out, *jump]
            leaving = _leaving([statement])
            if leaving and isinstance(statement, ast.If):
                statement, rest = _with_rest(statement, rest)
            out += self._lower(statement, loop)
            if leaving:
                return out + self._unless_left(leaving, rest, loop)
        return out

    def _jump(self, statement: ast.stmt, loop: Flags) -> Body:
        """Return the statements that a jump becomes, [] for another statement."""
        match statement:
            case ast.Return(value=value):
                new: Body = [assign(RETURNED, ast.Constant(True)), assign(RESULT, value or ast.Constant(None))]
            case ast.Break():
                new = [assign(loop.broken, ast.Constant(True))]
            case ast.Continue():
                new = [assign(loop.skipped, ast.Constant(True))]
            case ast.Raise():
                new = [statement]
            case _:
                new = []
        return [at(s, statement) for s in new]

    def _unless_left(self, leaving: set[type[ast.stmt]], rest: Body, loop: Flags) -> Body:
        if not rest:
            return []
        names = {ast.Return: RETURNED, ast.Break: loop.broken, ast.Continue: loop.skipped}
        flags = [load(name) for kind, name in names.items() if kind in leaving]
        return [at(ast.If(negate(either(flags)), self._non_empty(rest, loop), []), rest[0])]

    def _non_empty(self, statements: Sequence[ast.stmt], loop: Flags) -> Body:
        return self.block(statements, loop) or [ast.Pass()]

    def _lower(self, statement: ast.stmt, loop: Flags) -> Body:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                before, test = self._lower_test(test)
                new: ast.stmt = ast.If(test, self._non_empty(body, loop), self.block(orelse, loop))
                return [*before, ast.copy_location(new, statement)]
            case ast.While() | ast.For():
                return self._loop(statement, loop)
            case ast.With(items=items, body=body):
                new = ast.With(items, self._non_empty(body, loop))
            case ast.Try():
                new = self._try(statement, loop)
            case ast.Match():
                return self._match(statement, loop)
            case _:
                return [statement]
        return [ast.copy_location(new, statement)]

    # Loops ---------------------------------------------------------------------------------------------------

    def _loop(self, loop: ast.While | ast.For, outer: Flags) -> Body:
        """Lower a loop: flags end it and its rounds, and its else runs unless it was left."""
        leaving = _leaving(loop.body)
        flags = Flags(self._name("is broken"), self._name("is skipped"))
        body = self._non_empty(loop.body, flags)
        before: Body = []
        if ast.Continue in leaving:
            body = [assign(flags.skipped, ast.Constant(False)), *body]
        if ast.Break in leaving:
            before = [assign(flags.broken, ast.Constant(False))]
        left: list[ast.expr] = [load(RETURNED)] if ast.Return in leaving else []
        left += [load(flags.broken)] if ast.Break in leaving else []
        goes_on = negate(either(left)) if left else None
        if isinstance(loop, ast.While):
            before, new = self._while(loop, before, body, goes_on)
        else:
            new = ast.For(loop.target, loop.iter, body, [])
            set_until(new, goes_on and at(copy_tree(goes_on), loop))
        out = [*before, ast.copy_location(new, loop)]
        if loop.orelse:
            orelse = self._non_empty(loop.orelse, outer)
            out += [ast.If(goes_on, orelse, [])] if goes_on else orelse
        return [at(s, loop) for s in out]

    def _while(self, loop: ast.While, before: Body, body: Body, goes_on: ast.expr | None) -> tuple[Body, ast.stmt]:
        """Lower a while loop: its test asks the flags first.

        A test that sets a variable is computed before each round.
        """
        test = loop.test
        if _sets(test):
            name = self._name("goes on")
            first, again = self._assign_before(name, copy_tree(test)), self._assign_before(name, test)
            before = [*before, *(at(s, loop) for s in first)]
            body = [*body, *([ast.If(copy_tree(goes_on), again, [])] if goes_on else again)]
            test = load(name)
        if goes_on is not None:
            constant = isinstance(test, ast.Constant) and bool(test.value)
            test = copy_tree(goes_on) if constant else ast.BoolOp(ast.And(), [copy_tree(goes_on), test])
        return before, ast.While(test, body, [])

    def _lower_test(self, test: ast.expr) -> tuple[Body, ast.expr]:
        """Return a test, and statements that come before it for parts that set variables and may not run."""
        if not (isinstance(test, ast.BoolOp) and _sets(test)):
            return [], test
        name = self._name("test")
        return [at(s, test) for s in self._assign_before(name, test)], at(load(name), test)

    def _assign_before(self, name: str, test: ast.expr) -> Body:
        """Return statements that set a variable to a test, with `and` and `or` as ifs."""
        if not isinstance(test, ast.BoolOp):
            return [assign(name, test)]
        first, *rest = test.values
        out = self._assign_before(name, first)
        value = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(test.op, rest), test)
        asked = load(name) if isinstance(test.op, ast.And) else negate(load(name))
        return [*out, ast.If(asked, self._assign_before(name, value), [])]

    # Other blocks --------------------------------------------------------------------------------------------

    def _try(self, statement: ast.Try, loop: Flags) -> ast.Try:
        if _leaving(statement.finalbody) or (statement.orelse and _leaving(statement.body)):
            raise NotConvertedError("it jumps out of a finally, or out of a try that has an else; jump after it")
        handlers = [
            ast.copy_location(ast.ExceptHandler(h.type, h.name, self._non_empty(h.body, loop)), h)
            for h in statement.handlers
        ]
        blocks = [self.block(part, loop) for part in (statement.body, statement.orelse, statement.finalbody)]
        return ast.Try(blocks[0] or [ast.Pass()], handlers, blocks[1], blocks[2])

    def _match(self, statement: ast.Match, loop: Flags) -> Body:
        """Lower a match on constants to a chain of ifs. Raises NotConvertedError for other patterns."""
        subject = self._name("subject")
        chain: Body = []
        for case in reversed(statement.cases):
            test = _test(case.pattern, subject)
            if case.guard is not None:
                test = case.guard if _is_true(test) else ast.BoolOp(ast.And(), [test, case.guard])
            body = self._non_empty(case.body, loop)
            chain = body if _is_true(test) else [at(ast.If(test, body, chain), case.body[0])]
        return [at(assign(subject, statement.subject), statement), *chain]


def _sets(test: ast.expr) -> bool:
    """Whether a test sets a variable."""
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(test))


def _with_rest(statement: ast.If, rest: Body) -> tuple[ast.If, Body]:
    """Move the statements after an if into its other branch, where one branch always leaves."""
    body, orelse = statement.body, statement.orelse
    if rest and _never_ends(body):
        orelse, rest = [*orelse, *rest], []
    elif rest and orelse and _never_ends(orelse):
        body, rest = [*body, *rest], []
    return ast.copy_location(ast.If(statement.test, body, orelse), statement), rest


def _test(pattern: ast.pattern, subject: str) -> ast.expr:
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(load(subject), [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            return ast.Compare(load(subject), [ast.Is()], [ast.Constant(value)])
        case ast.MatchOr(patterns=patterns):
            return either([_test(alternative, subject) for alternative in patterns])
        case ast.MatchAs(pattern=None, name=None):
            return ast.Constant(True)
    raise NotConvertedError("it matches patterns that are no constants; write ifs")


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and test.value is True
