"""Rules of `--fail-if`: how they are read, judged, and turned into exit codes."""

import pytest

from compare.errors import InputsError
from compare.gate import rules
from compare.gate.rules import FailRule, Judgement, exit_code, gate, parse_rule
from compare.stats import Interval
from tests.helpers.plans import plan_of

MODES = ("dynamic", "static-exact", "static-symbolic")
ALIASES = {"static": "static-exact"}


def asked(processes):
    return plan_of("graphduel", "f.py:f", "", None, processes=processes)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("static > 1.05", ("static-exact", "dynamic", ">", 1.05)),
        ("  static>1 ", ("static-exact", "dynamic", ">", 1.0)),
        ("static-symbolic/static >= 2", ("static-symbolic", "static-exact", ">=", 2.0)),
        ("dynamic / static < 1.5", ("dynamic", "static-exact", "<", 1.5)),
        ("static-exact<=0.9", ("static-exact", "dynamic", "<=", 0.9)),
    ],
)
def test_a_rule_is_read(written, expected):
    rule = parse_rule(written, MODES, ALIASES)
    assert (rule.top, rule.bottom, rule.comparison, rule.number) == expected


def test_a_mode_that_is_a_word_has_a_name_in_a_rule():
    modes = ("eager", "fast", "compile(dynamic=True)")
    assert parse_rule("fast > 1.05", modes, {}).top == "fast"
    with pytest.raises(
        InputsError, match=r"needs a name there: --mode 'NAME=compile\(dynamic=True\)', and NAME in the"
    ):
        parse_rule("compile(dynamic=True) > 1.05", modes, {})


@pytest.mark.parametrize(
    "written",
    ["", "static", "static > ", "> 1.05", "static > nan", "static > 1e3", "static == 1", "static > 1 or static < 2",
     "static > -1", "a / b / c > 1", "__import__('os') > 1", "static > 1; 2", "static > 1\u0661"],
)  # fmt: skip
def test_a_rule_that_cannot_be_read_says_what_is_allowed(written):
    with pytest.raises(InputsError, match="cannot be read; write MODE > NUMBER or MODE / MODE > NUMBER") as caught:
        parse_rule(written, MODES, ALIASES)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("statc > 1", "statc is not measured; the modes that are: dynamic, static-exact, static-symbolic"),
        ("static-pad > 1", "static-pad is not measured; the modes that are: dynamic, static-exact, static-symbolic"),
        ("dynamic > 1", "compares dynamic with itself"),
        ("static > 0.0", "compares with 0, which no ratio reaches"),
    ],
)
def test_a_rule_over_other_modes_is_refused(written, message):
    with pytest.raises(InputsError, match=message):
        parse_rule(written, MODES, ALIASES)


@pytest.mark.parametrize("processes", [1, 2])
def test_too_few_processes_for_an_interval_are_refused(processes):
    with pytest.raises(InputsError, match="at least 3, not"):
        gate(("static > 1",), None, None, [asked(processes)])
    assert gate((), None, None, [asked(processes)]).rules == ()
    assert len(gate(("static > 1",), None, None, [asked(0)]).rules) == 1


RATIOS = [
    (">", Interval(1.2, 1.1, 1.3), "holds"),
    (">", Interval(1.1, 1.0, 1.2), "unclear"),
    (">", Interval(1.0, 0.9, 1.04), "does not hold"),
    (">=", Interval(1.05, 1.05, 1.05), "holds"),
    (">", Interval(1.05, 1.05, 1.05), "does not hold"),
    ("<", Interval(0.9, 0.8, 1.0), "holds"),
    ("<", Interval(1.0, 0.9, 1.1), "unclear"),
    ("<=", Interval(1.2, 1.1, 1.3), "does not hold"),
    (">", Interval(9.0), "unclear"),
    (">", None, "not measured"),
]


@pytest.mark.parametrize(("comparison", "ratio", "outcome"), RATIOS)
def test_a_rule_holds_only_with_its_whole_interval(comparison, ratio, outcome, monkeypatch):
    monkeypatch.setattr(rules.Quantity, "ratio", lambda *_: ratio)
    assert FailRule("r", "static-exact", "dynamic", comparison, 1.05).judge([]).outcome == outcome


def test_a_rule_over_no_records_is_not_measured():
    found = FailRule("static > 1", "static-exact", "dynamic", ">", 1.0).judge([])
    assert str(found) == "--fail-if 'static > 1': not measured: static-exact ÷ dynamic was not measured"


@pytest.mark.parametrize(
    ("measured", "outcomes", "code"),
    [
        (0, [], 0), (3, [], 3), (0, ["does not hold"], 0), (3, ["does not hold"], 0), (3, ["unclear"], 0),
        (0, ["holds"], 6), (3, ["unclear", "holds"], 6), (0, ["holds", "not measured"], 5),
        (4, ["holds"], 4), (1, ["holds"], 1), (5, ["not measured"], 5),
    ],
)  # fmt: skip
def test_exit_codes(measured, outcomes, code):
    rule = FailRule("static > 1", "static-exact", "dynamic", ">", 1.0)
    assert exit_code(measured, [Judgement(rule, outcome, None) for outcome in outcomes]) == code
