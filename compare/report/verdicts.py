"""The lines of verdicts.json, ready to print."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compare.report import text
from compare.report.page import Table, Verdict

# A word and a shape for each verdict, so that colour is never the only cue.
_MARKS = {
    "supported": ("✓", "yes"),
    "refuted": ("✗", "no"),
    "depends": ("◐", "mixed"),
    "proxy only": ("◇", "mixed"),
    "inconclusive": ("?", "open"),
    "not measured yet": ("○", "open"),
}
_COUNTED = {
    "supported": "supported",
    "refuted": "refuted",
    "depends": "true in some regimes only",
    "proxy only": "judged by proxies only",
    "inconclusive": "inconclusive",
    "not measured yet": "not measured yet",
}


def parse(lines: Any) -> tuple[list[Verdict], int]:
    """The verdicts in `lines` (the JSON value of the file), and how many entries were no verdict."""
    entries = lines if isinstance(lines, list) else []
    verdicts = []
    for entry in entries:
        try:
            verdicts.append(_verdict(entry))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return verdicts, len(entries) - len(verdicts)


def headline(verdicts: Sequence[Verdict]) -> str:
    """One sentence that counts the verdicts."""
    if not verdicts:
        return "No verdict was computed for this run."
    found = Counter(verdict.word for verdict in verdicts)
    parts = [f"{found[word]} {_COUNTED.get(word, word)}" for word in (*_MARKS, *sorted(found.keys() - _MARKS.keys()))]
    return f"Of {len(verdicts)} claims: {text.listed([part for part in parts if not part.startswith('0 ')])}."


def _verdict(entry: Mapping[str, Any]) -> Verdict:
    word = str(entry["verdict"])
    icon, tone = _MARKS.get(word, ("?", "open"))
    reasons = _lines(entry.get("reasons"))
    unit = str((entry.get("effect") or {}).get("unit", ""))
    return Verdict(
        claim=str(entry["claim"]),
        title=str(entry["title"]),
        statement=str(entry.get("statement", "")),
        opposite=str(entry.get("opposite", "")),
        word=word,
        icon=icon,
        tone=tone,
        effect=_effect(entry.get("effect"), entry.get("interval"), word),
        effect_name=str((entry.get("effect") or {}).get("name", "")),
        why=reasons[0] if reasons else "",
        measured=str(entry.get("measured", "")),
        rule=str(entry.get("rule", "")),
        regimes=_regimes(entry.get("regimes") or (), unit),
        strongest=tuple(_strongest(entry.get("strongest") or {}, unit)),
        reasons=reasons,
        not_tested=_lines(entry.get("not_tested")),
        literature=_lines(entry.get("literature")),
    )


def _effect(effect: Mapping[str, Any] | None, interval: Sequence[float] | None, word: str) -> str:
    if effect is None:
        return ""
    return _measure(effect["value"], interval, str(effect.get("unit", "")), word)


def _measure(value: float | None, interval: Sequence[float] | None, unit: str, word: str) -> str:
    """0.41× [0.40, 0.42]: a value, and its interval in the same unit if it has one.

    A count that is exact has none, and its verdict is not open.
    """
    if value is None:
        return ""
    shown = text.quantity(float(value), unit)
    if interval is None:
        return f"{shown} (no interval)" if word == "inconclusive" else shown
    low, high = (float(end) for end in interval)
    ends = text.quantity(low, unit), text.quantity(high, unit)
    return f"{shown} {text.interval(low, high) if unit in text.RATIO_UNITS else '[' + ', '.join(ends) + ']'}"


def _regimes(regimes: Sequence[Mapping[str, Any]], unit: str) -> Table | None:
    rows = tuple((str(r["name"]), _marked(str(r["verdict"])), _value(r, unit)) for r in regimes)
    return Table(("regime", "verdict", "value"), rows, "llr") if rows else None


def _value(regime: Mapping[str, Any], unit: str) -> str:
    return _measure(regime.get("value"), regime.get("interval"), unit, str(regime["verdict"]))


_SIDES = {"claim": "Where the claim is strongest", "opposite": "Where its opposite is strongest"}


def _strongest(sides: Mapping[str, Any], unit: str) -> Iterator[tuple[str, str]]:
    for side, words in _SIDES.items() if sides else ():
        found = sides.get(side)
        told = (str(found["name"]), _value(found, unit)) if found else ()
        yield words, ": ".join(filter(None, told)) or "in no regime that was measured"


def _marked(word: str) -> str:
    return f"{_MARKS.get(word, ('?', ''))[0]}\N{NO-BREAK SPACE}{word}"


def _lines(value: Any) -> tuple[str, ...]:
    return tuple(str(line) for line in value) if isinstance(value, list) else ()
