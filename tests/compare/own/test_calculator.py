"""The calculator of a result in a notebook: from the records alone, and its script says what the break-even says."""

import json
import re
import shutil
from html import unescape

import pytest

import compare
from compare.claims.evidence import cells
from compare.claims.regimes import course
from compare.records.cells import Time
from compare.report.show import calculator
from tests.helpers import own_functions as own
from tests.helpers.own_functions import QUICK


@pytest.fixture(scope="module")
def result():
    return compare.compare(own.loss, own.inputs, **QUICK)


def data_of(frame):
    page = unescape(re.search('srcdoc="(.*)"', frame, re.DOTALL)[1])
    return json.loads(re.search('id="data">(.*?)</script>', page)[1])


def test_it_costs_what_the_records_say(result):
    data = data_of(calculator(result))
    assert data["base"] == "dynamic"
    times = cells(result.records, Time)[0]
    for mode in data["modes"]:
        path = course(times, mode["name"])
        assert mode["steady"] == path.steady
        assert mode["early"] == path.early.tolist()
    assert calculator(result) in result._repr_html_()


@pytest.mark.slow
def test_one_mode_has_nothing_to_choose():
    assert calculator(compare.compare(own.loss, own.inputs, ["dynamic"], **QUICK)) == ""


@pytest.mark.browser
def test_more_runs_cost_more_and_the_answer_follows(result, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or pytest.skip("no Chromium is on the PATH")
    (tmp_path / "cell.html").write_text(f"<!doctype html><html lang=en><title>t</title>{calculator(result)}", "utf-8")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.goto((tmp_path / "cell.html").as_uri())
        frame = page.frame_locator("iframe")
        counts, answers = [], []
        for place in ("0", "7"):
            frame.locator("#runs").fill(place)
            counts.append(frame.locator("#count").text_content())
            answers.append(frame.locator("tr").all_text_contents())
        sizes = frame.locator("html").evaluate("e => [e.scrollWidth - innerWidth, e.scrollHeight - innerHeight]")
        browser.close()
    assert sizes == [0, 0]  # all of it is seen on a phone
    assert counts == ["1", "10,000,000"]
    assert all(len(rows) == len(data_of(calculator(result))["modes"]) for rows in answers)
    assert answers[0] != answers[1]
