"""Registration: jobs, workers, the schema and the page find a claim by its object, and a kind in its one table."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from compare.claims import CLAIMS
from compare.records.job import KINDS, register
from compare.records.record import Kind, Record
from compare.report import figures
from compare.report.figures import FIGURES
from tests.helpers.records import typed

ROOT = Path(__file__).resolve().parents[2]
CHECKS = {claim.check.name: claim for claim in CLAIMS.values() if claim.check}


def test_no_two_register_one_kind():
    class Other(Record, tag="time"):
        """Another type of that name."""

    before = dict(KINDS)
    register(KINDS["time"])
    with pytest.raises(ValueError, match="a kind of record is called 'time' already"):
        register(Kind(Other))
    assert before == dict(KINDS)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_a_claim_reads_kinds_that_are_written(claim):
    assert claim.reads
    assert set(claim.reads) <= {kind.type for kind in KINDS.values()}
    assert claim.check is None or claim.check.type in claim.reads


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_a_rule_sees_no_kind_that_its_claim_does_not_name(claim):
    from tests.compare.test_claims import everything

    other = [record for record in typed(everything()) if not isinstance(record, claim.reads)]
    assert other
    assert claim.judge(other).finding == claim.judge([]).finding


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.measure], ids=lambda kind: kind.name)
def test_what_measures_a_kind_is_there(kind):
    module, _, function = kind.measure.partition(":")
    assert callable(getattr(import_module(module), function))


def test_every_figure_can_be_drawn_from_nothing():
    texts = {path.stem: path.read_text("utf-8") for path in Path(figures.__path__[0]).glob("[!_]*.py")}
    drawn = {
        f"{stem}:{name}"
        for stem, text in texts.items()
        for name in re.findall(r"^def (draw_\w+)\(summary", text, re.MULTILINE)
    }
    assert set(FIGURES) == drawn
    assert {claim for claims in FIGURES.values() for claim in claims} <= {"answer", "parity", *CLAIMS, "F1", "F2", "F3"}


# "gradients" are also a class of bytes, and the page tells each failed check of them.
def test_no_room_but_claims_names_the_kind_of_a_check():
    files = [path for path in (ROOT / "compare").rglob("*.py") if not {"claims", "records"} & set(path.parts)]
    texts = {path: path.read_text("utf-8") for path in files}
    kinds = CHECKS.keys() - {"gradients"}
    suspects = [path for path, text in texts.items() if any(kind in text for kind in kinds)]
    nodes = [(path.name, node) for path in suspects for node in ast.walk(ast.parse(texts[path]))]
    assert not [(file, node.value) for file, node in nodes if isinstance(node, ast.Constant) and node.value in kinds]


NEW_CLAIM = """
import compare.claims
from compare.claims import Claim, Finding
from compare.records.record import Kind, Record


class Haste(Record, tag="haste"):
    claim: str
    haste: float


def find(records):
    return Finding("supported" if records[0].haste > 1 else "refuted", ("it is so",))


NEW = Claim(
    "C9", "Haste", "Haste makes waste.", "It does not.", "Haste.", "More than 1.", find, (Haste,),
    check=Kind(Haste, "builtins:dict"),
)
compare.claims.CLAIMS = {**compare.claims.CLAIMS, "C9": NEW}  # as the one list has it

from compare.errors import ResultsError
from compare.report import formats
from compare.records import results
from compare.run import executors, worker
from compare.plans import jobs
from compare.plans.settings import Settings

job = jobs.check_jobs(Settings())[-1]
assert (job.kind, job.claim, job.source) == ("haste", "C9", "builtins:dict")
assert (worker.handler(job).func, worker.handler(job).args) == (dict, (job,))
assert executors.measure_job(lambda job, timeout: Haste("C9", 1.0), job, 1).job == job.name
record = Haste("C9", 2.0)
assert results.parse_line(results.encode(record)) == record
try:
    results.parse_line(b'{"schema": 1, "kind": "haste", "claim": "C9", "haste": "great"}')
except ResultsError as error:
    assert "Expected `float`, got `str` - at `$.haste`" in str(error)
else:
    raise AssertionError("a line that breaks its type was read")
assert "Haste" in formats.json_schema()["$defs"]
assert compare.claims.judge([record])[-1].finding.verdict == "supported"
assert compare.claims.judge([Haste("C9", 0.5)])[-1].finding.verdict == "refuted"
"""


def test_a_claim_in_the_list_is_known_everywhere():
    done = subprocess.run([sys.executable, "-c", NEW_CLAIM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
