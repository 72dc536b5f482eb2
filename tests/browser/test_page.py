"""The pages that people open, in a real Chromium: nothing asked of any network, readable on a phone, by anyone."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from compare import report
from compare.claims import changes, judge
from compare.cli.command import graphduel
from compare.report import printers
from compare.report import runs as several
from tests.helpers.claim_records import BASE, cell, grid, grid_memory, lengths
from tests.helpers.records import typed

pytestmark = pytest.mark.browser

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="axe-playwright-python is not installed: make test-browser installs it",
)
PLACES = {
    (ops, depth, size): ratio
    for ops in ("elementwise", "matmul")
    for depth, size, ratio in ((1, 16, 3.0), (1, 4096, 1.0), (8, 16, 12.0), (8, 4096, 0.5), (64, 16, 4.0))
}


REFERENCE = Path(__file__).parents[2] / "reports" / "reference" / "report.html"
PAGES = ("run", "trend", "own", "reference")
OWN = """
import numpy as np
import graphs

def loss(w, x):
    h = x
    for _ in range(4):
        h = graphs.tanh(h @ w)
    if h.sum() > 0:
        return (h * h).sum()
    return h.sum()

def inputs():
    draw = np.random.default_rng(0)
    w = draw.standard_normal((16, 16), dtype=np.float32)
    return [(w, draw.standard_normal((rows, 16), dtype=np.float32)) for rows in (4, 6, 8, 8, 6, 4)]
"""


def _run(directory):
    """A small run of workloads, as its records say."""
    strategies = lengths({"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE / 2}})
    lines = [*grid(PLACES, build=100 * BASE), *grid_memory(PLACES), *strategies]
    records = typed([{"schema": 1, **line} for line in lines])
    return report.write(directory, records, judge(records))[0]


def _trend(directory):
    """Three runs, of which the last is slower."""
    runs = {}
    for day, seconds in enumerate((1.0, 1.0, 1.3), 1):
        start = {"kind": "run", "run": f"r{day}", "at": f"2030-01-0{day}T00:00:00+00:00", "settings": {}}
        environment = {"cpu": "A", "machine": "x86_64", "commit": f"c{day}"}
        modes = {"dynamic": {"seconds": 1.0}, "static-exact": {"seconds": seconds}}
        runs[f"reports/run-{day}"] = typed([{**start, "environment": environment}, *cell("w", modes, processes=4)])
    dated = [changes.JudgedRun(name, records) for name, records in runs.items()]
    page = directory / "trend.html"
    page.write_text(printers.to_html(several.over_time(dated, changes.over_time(dated))))
    return page


def _own(directory):
    """The report of a function of one's own, with each of its sections."""
    (directory / "mine.py").write_text(OWN)
    asked = ["compare", f"{directory / 'mine.py'}:loss", "--inputs", "inputs", "--processes", "3", "--out"]
    ended = CliRunner().invoke(graphduel, [*asked, str(directory / "own")])
    page = directory / "own" / "report.html"
    assert page.exists(), ended.output
    return page


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Where each page lies; one is made when it is first asked for."""
    makers, made = {"run": _run, "trend": _trend, "own": _own, "reference": lambda _: REFERENCE}, {}

    def page(name):
        if name not in made:
            made[name] = makers[name](tmp_path_factory.mktemp(name)).as_uri()
        return made[name]

    return page


@pytest.fixture
def opened(chromium, pages):
    contexts = []

    def open_page(name="run", **settings):
        context = chromium.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.heard, page.asked = [], []
        page.on("console", lambda message: page.heard.append(message.text))
        page.on("pageerror", lambda error: page.heard.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(pages(name))
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_opens_without_an_error_and_asks_nothing_of_a_network(opened, name):
    page = opened(name)
    assert page.heard == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_scrolls_sideways(opened, name, width):
    page = opened(name, viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wider = "[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().right > innerWidth).length"
    assert page.evaluate(wider) == 0
    shown = "[...document.querySelectorAll('.scroll')].filter(s => !s.closest('details:not([open])'))"
    cut = f"{shown}.filter(s => s.scrollWidth > s.clientWidth + 1).map(s => s.getAttribute('aria-label'))"
    assert page.evaluate(cut) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, name, scheme):
    found = axe.Axe().run(opened(name, color_scheme=scheme)).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []


def test_the_calculator_answers_what_it_is_asked(opened):
    page = opened()
    answer = page.locator("output")
    page.fill("input[name=floats]", "16")
    page.fill("input[name=runs]", "1000000")
    assert answer.inner_text().startswith("Compile: in all, static is ")
    page.fill("input[name=runs]", "1")
    assert answer.inner_text().startswith("Stay dynamic: in all, static is ")
    assert "It is paid back after " in answer.inner_text()


@pytest.mark.parametrize(
    ("field", "value"), [("floats", "-5"), ("runs", "0"), ("ops", ""), ("shapes", "1.5"), ("floats", "1e")]
)
def test_the_calculator_says_what_it_cannot_take(opened, field, value):
    page = opened()
    page.fill(f"input[name={field}]", "") if value in ("", "1e") else page.fill(f"input[name={field}]", value)
    if value == "1e":
        page.type(f"input[name={field}]", value)
    said = page.locator("output").inner_text()
    assert said.endswith(" must be a whole number, 1 or more.")
    assert page.get_attribute(f"input[name={field}]", "aria-invalid") == "true"
    page.fill(f"input[name={field}]", "10")
    assert "in all, static is" in page.locator("output").inner_text()
    assert page.get_attribute(f"input[name={field}]", "aria-invalid") == "false"


@pytest.mark.parametrize(("name", "what"), [("run", ".verdicts"), ("own", "main table"), ("reference", ".verdicts")])
def test_few_words_stand_before_the_claims_or_the_costs_of_a_function(opened, name, what):
    before = f"document.body.innerText.split(document.querySelector('{what}').innerText.slice(0, 20))[0]"
    assert len(opened(name).evaluate(before).split()) <= 120


@pytest.mark.parametrize("name", ["run", "own", "reference"])
def test_marks_of_a_figure_say_their_values(opened, name):
    titles = "[...document.querySelectorAll('figure svg title')].map(title => title.textContent)"
    said = opened(name, java_script_enabled=True).evaluate(titles)
    assert said
    assert all(title == "pays at once" or any(letter.isdigit() for letter in title) for title in said)


def test_what_is_folded_is_closed_on_a_screen_and_open_on_paper(opened):
    folds = "[...document.querySelectorAll('details.more > :not(summary)')]"
    shown = f"{folds}.filter(inside => inside.checkVisibility()).length"
    page = opened()
    assert page.evaluate(shown) == 0
    page.emulate_media(media="print")
    assert page.evaluate(shown) == page.evaluate(f"{folds}.length") > 3


def test_the_page_is_complete_without_a_script(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("form").is_hidden()
    words = page.inner_text("main")
    for said in ("Compile a step that runs more than", "seconds of a step = a + ops", "The coefficients of this run"):
        assert said in words, said


def test_figures_follow_the_theme_and_a_phone_gets_its_own(opened):
    fills = {}
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        fills[scheme] = page.evaluate("getComputedStyle(document.querySelector('#figure-decision text')).fill")
        assert page.locator("#figure-decision .wide").is_visible()
    assert fills["light"] != fills["dark"]
    phone = opened(viewport={"width": 390, "height": 844})
    assert phone.locator("#figure-decision .narrow").is_visible()
    assert phone.locator("#figure-decision .wide").is_hidden()


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_the_page_leads_somewhere(opened, name):
    page = opened(name)
    dead = """[...document.querySelectorAll('a[href^="#"]')].map(a => a.hash.slice(1))
        .filter(id => !document.getElementById(id))"""
    assert page.evaluate(dead) == []
    twice = "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, at, all) => all.indexOf(id) !== at)"
    assert page.evaluate(twice) == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_on_paper(opened, name):
    page = opened(name, viewport={"width": 720, "height": 1000})  # what A4 has beside its margins
    page.emulate_media(media="print")
    cut = """[...document.querySelectorAll('main p, main li, main figure, main dd')].filter(e => e.checkVisibility())
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(cut) == []
