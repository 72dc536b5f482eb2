"""Words in the files of the gate: what Markdown and XML would take as their own."""

from xml.etree import ElementTree as ET

from compare.gate import rules
from compare.gate.rules import FailRule, Judgement
from compare.own.result import Result
from compare.records.cells import Parity, ParityRow
from compare.records.job import Job


def test_markdown_shows_signs_as_they_are():
    assert rules._text("a | b_c *d*\n<e>") == r"a \| b\_c \*d\* \<e\>"


def test_junit_counts_each_ending_and_holds_any_text():
    rows = {
        "dynamic": ParityRow("ok", None, 0.0, 0.0, 1e-4),
        "static-exact": ParityRow("disagree", "off by <3> \x1b[1m", 3.0, None, 1e-4),
        "static-pad": ParityRow("failed", "ValueError: & more", None, None, 1e-4),
    }
    job = Job("parity", "mine", "given")
    records = (Parity(**job.head, agree=False, modes=rows, same_graph=None, kernel_calls={}),)
    rule = Judgement(FailRule("static > 1", "static-exact", "dynamic", ">", 1.0), "not measured", None)
    document = rules.junit(Result("mine", tuple(rows), records), [rule])
    suite = ET.fromstring(document)
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["4", "1", "2", "0"]
    assert suite[1][0].get("message") == "off by <3> \\x1b[1m"
    assert suite[2][0].get("message") == "ValueError: & more"
    assert suite[3][0].get("message") == "not measured: static-exact ÷ dynamic was not measured"
