"""Every report that is shipped can be drawn again, whole, from its results file."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel

REPORTS = Path(__file__).parents[2] / "reports"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["frameworks", "models", "reference"])
def test_a_shipped_report_draws_again_and_has_the_same_figures(name, tmp_path):
    drawn = tmp_path / name
    shutil.copytree(REPORTS / name, drawn)
    for page in ("report.html", "report.md"):
        (drawn / page).unlink()
    shutil.rmtree(drawn / "plots")
    done = CliRunner().invoke(graphduel, ["report", str(drawn)])
    assert done.exit_code == 0, done.output
    assert (drawn / "report.md").read_text("utf-8").startswith("#")
    assert "</html>" in (drawn / "report.html").read_text("utf-8")
    plots = {path.name for path in (REPORTS / name / "plots").iterdir()}
    assert {path.name for path in (drawn / "plots").iterdir()} >= plots  # and for the page one as SVG of each
