"""The page of a small recorded run in a real Chromium: nothing asked of any network, readable on a phone, by anyone."""

import shutil

import pytest

from compare import report
from compare.claims import judge
from tests.helpers.claim_records import BASE, grid, grid_memory, lengths
from tests.helpers.records import typed

pytestmark = pytest.mark.browser

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: make test-browser installs it"
)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PLACES = {
    (ops, depth, size): ratio
    for ops in ("elementwise", "matmul")
    for depth, size, ratio in ((1, 16, 3.0), (1, 4096, 1.0), (8, 16, 12.0), (8, 4096, 0.5), (64, 16, 4.0))
}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    strategies = lengths({"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE / 2}})
    lines = [*grid(PLACES, build=100 * BASE), *grid_memory(PLACES), *strategies]
    records = typed([{"schema": 1, **line} for line in lines])
    return report.write(directory, records, judge(records))[0].as_uri()


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("no Chromium is on the PATH")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, page_file):
    contexts = []

    def open_page(**settings):
        context = chromium.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.heard, page.asked = [], []
        page.on("console", lambda message: page.heard.append(message.text))
        page.on("pageerror", lambda error: page.heard.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(page_file)
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_the_page_opens_without_an_error_and_asks_nothing_of_a_network(opened):
    page = opened()
    assert page.heard == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_scrolls_sideways(opened, width):
    page = opened(viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wider = "[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().right > innerWidth).length"
    assert page.evaluate(wider) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, scheme):
    found = axe.Axe().run(opened(color_scheme=scheme)).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []


def test_the_calculator_answers_what_it_is_asked(opened):
    page = opened()
    answer = page.locator("output")
    page.fill("input[name=floats]", "16")
    page.fill("input[name=runs]", "1000000")
    assert answer.inner_text().startswith("Compile: static ÷ dynamic is 0.")
    page.fill("input[name=runs]", "1")
    assert answer.inner_text().startswith("Stay dynamic: static ÷ dynamic is ")
    assert "It is paid back after " in answer.inner_text()


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
