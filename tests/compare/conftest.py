"""What several tests of compare share."""

import pytest

from compare import engines as frameworks
from compare import report, workloads
from compare.advice.prediction import machine, save
from tests.helpers.prices import US, costs


@pytest.fixture
def two_workloads(monkeypatch):
    """Two small workloads stand for all, and no report is written."""
    sources = {"tiny": "tests.helpers.fake_workloads:TINY", "stray": "tests.helpers.fake_workloads:STREAM"}
    monkeypatch.setattr(workloads, "_sources", sources)
    monkeypatch.setattr(report, "write", lambda *_: [])


@pytest.fixture
def toy(monkeypatch):
    """A framework made of our own engines stands for all."""
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"toy": "tests.helpers.toy_framework:Toy"})
    frameworks.find_engine.cache_clear()
    yield
    frameworks.find_engine.cache_clear()


@pytest.fixture
def saved(tmp_path):
    """A file of prices for this machine."""
    path = tmp_path / "costs.json"
    save(costs(machine(frameworks.find_engine(frameworks.OWN)), recorded_ops=US), path)
    return path


@pytest.fixture
def undrawn(monkeypatch):
    """The figures of a page are laid out and not drawn, which takes nearly all of its time: the test reads words."""
    monkeypatch.setattr("compare.report.figures.style.render", lambda drawing, kind: b'<svg width="1pt"></svg>')
