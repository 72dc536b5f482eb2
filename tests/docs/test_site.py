"""The site: pages come from the repository, the picture from the reference, and the checker finds what is broken."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compare.claims import CLAIMS
from docs.website import answer, api, check, claims, stage

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    stage.lay_out(folder)
    return folder


def test_every_page_of_the_menu_is_laid_out(pages):
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    named = re.findall(r"(\S+\.md)$", menu, re.MULTILINE)
    assert len(named) > 30
    assert all((pages / name).is_file() for name in named)
    docs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    assert docs <= set(named)


def test_each_claim_has_a_page_with_its_words_and_its_verdict(pages):
    for name, claim in CLAIMS.items():
        text = (pages / "docs" / "claims" / f"{name.lower()}.md").read_text("utf-8")
        assert all(part in text for part in (claim.statement, claim.opposite, claim.rule, *claim.not_tested))
        assert " in [the reference run]" in text
        assert "## Regimes" in text


def test_the_verdicts_of_the_claims_are_those_of_the_run():
    overview = claims.pages(ROOT / "reports" / "reference")["claims/README.md"]
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = dict(re.findall(r"^\| (C\d) [^|]*\| . ([a-z ]+) \|", readme, re.MULTILINE))
    assert set(shown) == set(CLAIMS)
    for name, verdict in shown.items():
        assert re.search(rf"^\| \[{name} [^|]*\| {verdict} \|", overview, re.MULTILINE), name


def test_every_entry_of_the_reference_exists():
    entries = [one for _, parts in api.PACKAGES.values() for entries in parts.values() for one in entries]
    for entry in entries:
        module, _, name = entry.partition(":")
        found = importlib.import_module(module)
        assert hasattr(found, name) if name else found.__doc__, entry


def test_links_to_code_lead_to_pages_of_code(pages):
    index = (pages / "README.md").read_text("utf-8")
    assert "](examples/README.md#train_digits)" in index
    assert "](docs/tutorial.md)" in index
    code = (pages / "examples" / "README.md").read_text("utf-8")
    assert "## train_digits.py { #train_digits }" in code
    assert (ROOT / "examples" / "train_digits.py").read_text("utf-8") in code


def test_a_link_in_code_stays_and_one_to_nothing_is_an_error():
    page = ROOT / "docs" / "page.md"
    assert stage.rewritten("`[a](nothing.md)` [b](https://example.org)", page) == (
        "`[a](nothing.md)` [b](https://example.org)",
        [],
    )
    written_out = r"layer[choice\](x)"  # brackets that a page says, which are no link
    assert stage.rewritten(written_out, page) == (written_out, [])
    with pytest.raises(FileNotFoundError, match=r"nothing\.md"):
        stage.rewritten("[a](nothing.md)", page)


def test_the_picture_is_that_of_the_reference():
    drawn = answer.svg(answer.cells())
    assert (ROOT / "docs" / "answer.svg").read_text("utf-8") == drawn, (
        "run: python -m docs.website.answer > docs/answer.svg"
    )


def test_the_answer_of_the_readme_counts_the_cells_of_the_reference():
    faster, slower = {}, {}
    for phase in ("steady state", "one-off run"):
        ends = [points[phase].ends or (0.0, float("inf")) for points in answer.cells().values()]
        faster[phase] = sum(high < 1 / 1.05 for _, high in ends)
        slower[phase] = sum(low > 1.05 for low, _ in ends)
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    cells = len(answer.cells())
    warm, first = "steady state", "one-off run"
    assert f"the static engine was faster in {faster[warm]} of {cells} cells and slower in {slower[warm]}" in text
    assert f"The first run from nothing was slower in {slower[first]} of {cells}" in text
    (speed,) = (one for one in json.loads(answer.VERDICTS.read_text("utf-8")) if one["claim"] == "C6")
    small = {regime["name"]: regime["value"] for regime in speed["regimes"]}["steady state, steps under 64 KiB"]
    assert f"reach less than 64 KiB, static took {small:.2f} of the time of dynamic" in text


BROKEN = """
<a href="other.html#there">fine</a> <a href="https://example.org">fine</a> <a href="#here" id="here">fine</a>
<a href="other.html#gone">x</a> <a href="gone.html">x</a> <img src="gone.png">
<script src="https://example.org/x.js"></script> <link rel="stylesheet" href="//example.org/x.css">
"""


def test_the_checker_finds_broken_links_and_other_hosts(tmp_path):
    (tmp_path / "index.html").write_text(BROKEN)
    (tmp_path / "other.html").write_text('<p id="there">')
    assert check.problems(tmp_path) == [
        "index.html: loads https://example.org/x.js from another host",
        "index.html: loads //example.org/x.css from another host",
        "index.html: other.html#gone has no such anchor",
        "index.html: gone.html leads nowhere",
        "index.html: gone.png leads nowhere",
    ]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="the extra `docs` is not installed")
def test_the_site_builds_without_a_warning_and_without_a_broken_link(tmp_path):
    stage.lay_out()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert check.problems(tmp_path) == []
    assert "Compile <code>f</code> for arguments of these specs." in (tmp_path / "docs/api/static.html").read_text()
