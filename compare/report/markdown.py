"""The page as Markdown, with the figures as files beside it."""

import html
import re
from collections.abc import Iterable, Iterator

from compare.report.page import Frameworks, Page, PageVerdict, Picture, Table
from compare.report.terminal import plain

# Only what would be markup where it stands: rnn_text and [0.40, 0.42] stay as they are.
_MARKUP = re.compile(r"([\\`*|~$]|(?<!\w)_|_(?!\w)|\](?=[(\[:]))")
_LINE_START = re.compile(r"^(#*|\d*)([-+#.)])(?=\s|-|$)")  # of a list, a heading or a rule
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")


def render(page: Page) -> str:
    """The Markdown of `page`; text is escaped, so no result can add markup of its own."""
    return "\n\n".join(filter(None, _blocks(page))) + "\n"


def _blocks(page: Page) -> Iterator[str]:
    yield f"# {_text(page.title)}"
    yield _text(page.subtitle)
    yield "## The answer"
    yield from (_text(sentence) for sentence in page.headline)
    yield _verdict_table(page.verdicts)
    yield "## The claims"
    for verdict in page.verdicts:
        yield from _claim(verdict)
    if page.frameworks:
        yield from _frameworks(page.frameworks)
    yield "## Figures"
    for picture in page.pictures:
        yield from _picture(picture)
    yield "## Parity gate"
    yield from (_text(note) for note in page.parity_notes)
    yield table(page.parity)
    yield "## Environment"
    yield table(page.environment) or "The results hold no record of the environment."
    yield "## How to reproduce"
    yield "\n".join(f"    {_one_line(command)}" for command in page.commands)
    yield "## Limits"
    yield _bullets(page.limits)
    yield table(page.failures)


def _verdict_table(verdicts: Iterable[PageVerdict]) -> str:
    rows = tuple((f"{v.claim} {v.title}", f"{v.icon} {v.word}", v.effect, v.why) for v in verdicts)
    return table(Table(("claim", "verdict", "effect [95% interval]", "why"), rows, "llrl")) if rows else ""


def _claim(verdict: PageVerdict) -> Iterator[str]:
    yield f"### {_text(verdict.claim)}: {_text(verdict.title)}"
    yield f"**{verdict.icon} {_text(verdict.word)}**" + (f" {_text(verdict.effect)}" if verdict.effect else "")
    named = (
        ("The claim", verdict.statement),
        ("Its opposite", verdict.opposite),
        ("What the effect is", verdict.effect_name),
        ("What is measured", verdict.measured),
        ("The rule, fixed before the data", verdict.rule),
        *verdict.strongest,
    )
    yield _bullets_raw(f"**{name}:** {_text(value)}" for name, value in named if value)
    yield table(verdict.regimes)
    lists = (
        ("Reasons", verdict.reasons),
        ("Not tested", verdict.not_tested),
        ("Literature", verdict.literature),
    )
    for name, lines in lists:
        if lines:
            yield f"**{name}**"
            yield _bullets(lines)


def _frameworks(found: Frameworks) -> Iterator[str]:
    yield "## Other frameworks"
    yield _text(found.question)
    yield table(found.agreement)
    for name, reasons in found.reasons:
        yield f"**{_text(name)}**"
        yield _bullets(reasons)
    yield table(found.cells)
    for name, verdicts in found.verdicts:
        yield f"### {_text(name)}"
        yield table(verdicts)
    yield _bullets(found.notes)


def _picture(picture: Picture) -> Iterator[str]:
    yield f"### {_text(picture.title)}"
    if picture.name is not None:
        yield f"![{_text(picture.title)}](plots/{picture.name}.png)"
    yield _text(picture.caption)
    yield table(picture.table)


def table(of: Table | None) -> str:
    """A table, its cells escaped; nothing for None."""
    if of is None:
        return ""
    rules = tuple({"l": ":--", "r": "--:"}[side] for side in of.align)
    rows = (tuple(map(_text, of.headers)), rules, *(tuple(map(_text, row)) for row in of.rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _bullets(lines: Iterable[str]) -> str:
    return _bullets_raw(map(_text, lines))


def _bullets_raw(lines: Iterable[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def _text(value: str) -> str:
    """`value` as one line of plain words: no markup, no HTML, no link."""
    plain = html.escape(_MARKUP.sub(r"\\\1", _one_line(value)), quote=False)
    plain = _AUTOLINK.sub(lambda match: f"{match[1]}&#{ord(match[2])};", plain)
    return _LINE_START.sub(r"\1\\\2", plain)


def _one_line(value: str) -> str:
    return plain(" ".join(value.split()))
