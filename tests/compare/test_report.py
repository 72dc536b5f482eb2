"""The report over a made-up run: what it says, what it escapes, and what it does when data are missing."""

import json
import random
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from compare import report
from compare.claims.base import Claim, Effect, Finding, Regime, Verdict
from compare.report.blocks import Bullets, Code, Inline, Section, Table, Terms, VerdictMark
from compare.report.figures import costs, parity, style
from compare.report.summary import summarise
from compare.stats import Interval
from graphs.errors import GraphError
from tests.helpers.records import typed

# workload: seconds a dynamic call, and for each static mode (steady ratio, seconds to build)
PLAN = {
    "big_matmul": (40e-3, {"static-exact": (1.0, 3e-3)}),
    "tiny_mlp": (60e-6, {"static-exact": (0.42, 4e-3)}),
    "elementwise_chain": (2.1e-3, {"static-exact": (0.71, 2.5e-3)}),
    "mlp_digits": (0.9e-3, {"static-exact": (0.88, 6e-3)}),
    "rnn_text": (2.4e-3, {"static-exact": (0.55, 0), "static-bucket": (0.66, 0), "static-pad": (1.9, 0)}),
    "tree_lstm": (5e-3, {"static-exact": (0.98, 0)}),
    "branch_on_sum": (9e-6, {"static-exact": (1.31, 1e-3)}),
}
STREAMS = {"rnn_text", "tree_lstm"}
CLASSES = {"parameters": 400_000, "gradients": 400_000, "saved": 250_000, "workspace": 90_000}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> | `x` [a](javascript:b) https://evil.example'


def run_line(**settings):
    environment = {"cpu": "a made-up CPU", "versions": {"numpy": "2.4.0"}, "affinity": [0], "commit": None}
    settings = {"preset": "quick", "seed": 7, "processes": 4, "only": None, **settings}
    return {
        "schema": 1,
        "kind": "run",
        "run": "r1",
        "at": "2030-01-02",
        "settings": settings,
        "environment": environment,
    }


def parity_line(workload, modes, size="small"):
    checked = {
        "status": "ok",
        "output_error": 1.5e-7,
        "gradient_error": 3e-7,
        "tolerance": 1e-5,
        "reason": None,
    }
    return {"schema": 1, "kind": "parity", "workload": workload, "size": size, "agree": True} | {
        "arms": {mode: dict(checked) for mode in modes}, "same_graph": True, "kernel_calls": {}
    }  # fmt: skip


def stream_of(rng, mode, seconds, compile_seconds=8e-3):
    seen, calls = set(), []
    for _ in range(60):
        length = rng.randint(4, 79)
        computed = {"static-pad": 79, "static-bucket": 1 << length.bit_length()}.get(mode, length)
        new = computed not in seen
        seen.add(computed)
        late = compile_seconds if new and mode != "dynamic" else 0
        calls.append(
            {
                "length": length,
                "seconds": late + seconds * computed / 40 * rng.lognormvariate(0, 0.08),
                "new": new,
            }
        )
    return calls


def time_line(rng, workload, process, size="small"):
    base, statics = PLAN[workload]
    noise = [rng.lognormvariate(0, 0.02) for _ in range(8)]

    def mode(name, ratio, build):
        blocks = [base * ratio * step * rng.lognormvariate(0, 0.01) for step in noise]
        stream = stream_of(rng, name, base * ratio) if workload in STREAMS else None
        return {"status": "ok", "reason": None, "build": build, "first": 3 * base * ratio, "blocks": blocks,
                "stream": stream, "compiles": 1, "compile_seconds": build, "useful": 100, "computed": 100}  # fmt: skip

    modes = {"dynamic": mode("dynamic", 1.0, 0.0)} | {name: mode(name, *plan) for name, plan in statics.items()}
    return {"schema": 1, "kind": "time", "workload": workload, "size": size, "process": process, "arms": modes}


def memory_line(workload, scale=1.0):
    modes = {}
    for mode in ("dynamic", *PLAN[workload][1]):
        extra = {"structure": 60_000} if mode == "dynamic" else {"plan": 90_000, "caches": 120_000}
        classes = {name: int(size * scale) for name, size in (CLASSES | extra).items()}
        modes[mode] = {"status": "ok", "reason": None, "peak": int(740_000 * scale), "resident_growth": 1 << 20,
                     "classes": classes, "nodes": 1234}  # fmt: skip
    return {"schema": 1, "kind": "memory", "workload": workload, "size": "small", "arms": modes}


def full_run():
    rng = random.Random(3)
    lines = [
        run_line(),
        {"schema": 1, "kind": "gradients", "claim": "C2", "checks": 1240, "passed": 1240, "failures": [], "by_op": {}},
    ]
    for at, workload in enumerate(PLAN):
        lines.append(parity_line(workload, ("dynamic", *PLAN[workload][1])))
        lines += [time_line(rng, workload, process) for process in range(4)]
        lines.append(memory_line(workload, 2.0 ** (at - 4)))
    return lines


def verdict(claim="C6", word="depends", interval=(0.658, 0.763), **fields):
    regime = Regime("one-off", "refuted", 5.0, Interval(5.0, 4.69, 5.26))
    said = {
        "id": claim, "title": f"title of {claim}", "statement": "they may be slower", "opposite": "they are not",
        "rule": "slower above 1.05", "literature": ("a paper (https://example.org/paper)",),
        "not_tested": ("accelerators",), "measured": "seconds", "find": None, "reads": (),
    }  # fmt: skip
    found = {
        "effect": Effect("static ÷ dynamic", 0.7071, "ratio"), "interval": interval and Interval(0.7071, *interval),
        "reasons": ("the first reason", "the second"), "regimes": (regime,),
    }  # fmt: skip
    of_finding = {name: fields.pop(name) for name in found.keys() & fields.keys()}
    return Verdict(Claim(**said | fields), Finding(word, **found | of_finding))


def written(directory, lines, verdicts=()):
    directory.mkdir(parents=True, exist_ok=True)
    files = report.write(directory, typed(lines), verdicts)
    assert all(file.is_file() and file.stat().st_size for file in files)
    return (directory / "report.html").read_text(), (directory / "report.md").read_text(), files


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    none = {"effect": None, "interval": None, "regimes": (), "reasons": ("no such records",)}
    verdicts = [verdict("C2", "supported"), verdict(), verdict("C7", "not measured yet", **none)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "render", one_of_the_others(style.render))
        return written(tmp_path_factory.mktemp("runs") / "demo", full_run(), verdicts)


def one_of_the_others(rendered):
    """Draw each figure's SVG as it is on a screen; of PNGs, and of SVGs for a phone, one stands for all."""
    others = {}

    def draw(drawing, kind):
        if (kind, style.width()) == ("svg", style.WIDTH):
            return rendered(drawing, kind)
        if kind not in others:
            others[kind] = rendered(drawing, kind)
        return others[kind]

    return draw


class Page(HTMLParser):
    """What a browser would see: tags with attributes, and the text."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def test_both_printings_lead_with_the_verdicts_and_their_numbers(whole):
    html, markdown, _ = whole
    for page in ("".join(Page(html).words), markdown):
        assert "Of 3 claims: 1 supported, 1 true under some conditions only and 1 not measured yet." in page
        assert "over 7 cells (workload and size): faster in 4, slower in 1 and a tie in 2" in page
        for said in ("◐ depends", "0.707× [0.658, 0.763]", "5× [4.69, 5.26]", "the second", "accelerators"):
            assert said in page.replace("◐depends", "◐ depends"), said
        assert (
            page.index("depends")
            < page.index("slower above 1.05")
            < page.index("1,240 of 1,240")
            < page.index("affinity")
        )


@pytest.mark.parametrize(
    ("tape", "said"),
    [
        pytest.param("compiled", "The tape ran compiled.", marks=pytest.mark.slow),
        ("python", "Conditions: not recorded. The tape ran in Python: ratios to the compiled tape would differ."),
        pytest.param(None, "These results do not say which tape ran.", marks=pytest.mark.slow),
    ],
)
def test_both_printings_say_at_their_top_which_tape_ran(tmp_path, undrawn, tape, said):
    start = run_line()
    html, markdown, _ = written(tmp_path / "one", [{**start, "environment": {"tape": tape}}], [])
    for page in ("".join(Page(html).words), markdown):
        assert page.index(said) < page.index("No verdict was computed")


def test_every_figure_is_there_as_png_and_svg_and_inside_the_page(whole, tmp_path):
    html, markdown, files = whole
    names = {file.name for file in files}
    tags = Page(html).tags
    images = [attributes["aria-label"] for tag, attributes in tags if tag == "svg" and "class" not in attributes]
    for name in ("steady", "break-even", "latency", "memory"):
        assert {f"{name}.png", f"{name}.svg"} <= names
        assert f"](plots/{name}.png)" in markdown
    assert len(images) == 2 * sum(name.endswith(".svg") for name in names)  # for a wide and for a narrow screen
    assert all(len(words) > 40 for words in images)
    texts = "".join(images)
    assert re.search(r"tiny_mlp small static-exact 0\.4\d*× \(faster\)", texts)


def test_the_page_asks_nothing_of_any_network(whole):
    html, markdown, _ = whole
    for tag, attributes in Page(html).tags:
        assert tag not in {"script", "link", "iframe", "object", "base", "img"}
        for name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
            assert (attributes.get(name) or "#").startswith("#")
    assert not re.search(r"url\((?!#)|@import", html)
    assert "https://example.org/paper" in html
    for figure in (file.read_text() for file in whole[2] if file.suffix == ".svg"):
        assert not re.search(r'(?:href|src)="(?!#)', figure)
        assert "<dc:date>" not in figure
    assert set(re.findall(r"\]\(([^)]*)\)", markdown)) == {
        f"plots/{p.stem}.png" for p in whole[2] if p.suffix == ".svg"
    }


def test_headings_never_skip_a_level_and_targets_of_links_exist(whole):
    tags = Page(whole[0]).tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for tag, attributes in tags if tag == "a"} <= set(ids)


@pytest.mark.slow
def test_the_same_results_give_the_same_bytes(tmp_path):
    (_, _, first), (_, _, again) = (written(tmp_path / place / "demo", full_run(), [verdict()]) for place in "ab")
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in again]


def test_hostile_text_stays_text(tmp_path):
    lines = [
        run_line(only=HOSTILE),
        {"schema": 1, "kind": "failure", "job": {"kind": HOSTILE}, "error": HOSTILE},
    ]
    lines += [json.loads(json.dumps(line).replace("tiny_mlp", json.dumps(HOSTILE)[1:-1])) for line in full_run()[5:13]]
    bad = verdict(HOSTILE, title=HOSTILE, statement=HOSTILE, reasons=(HOSTILE,), literature=(HOSTILE,))
    html, markdown, _ = written(tmp_path / "hostile", lines, [bad])
    page = Page(html)
    assert HOSTILE in "".join(page.words)
    assert not {tag for tag, _ in page.tags} & {"script"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    rendered = re.sub(r"(?m)^    .*$", "", markdown)
    assert "<script" not in rendered
    assert "https://evil" not in rendered
    assert "](javascript" not in rendered.replace("\\]", "")
    assert all(
        len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"(?<!\\)\|", head))
        for head, row in re.findall(r"(?m)^(\|.*)\n\|[ :|-]+\n(\|.*)", rendered)
    )


@pytest.mark.parametrize(
    ("lines", "verdicts", "said"),
    [
        ([run_line()], [], "No time of dynamic and of static once warm can be compared"),
        pytest.param([], (), "No verdict was computed for this run", marks=pytest.mark.slow),
        (full_run()[:4], [verdict()], "No memory of this run can be shown"),
        pytest.param(full_run()[4:], (), "no record of its settings", marks=pytest.mark.slow),
        pytest.param(
            [line for line in full_run() if line["kind"] != "parity"],
            [],
            "nothing in this run was shown to agree",
            marks=pytest.mark.slow,
        ),
        (
            [{"schema": 1, "kind": "failure", "job": {"kind": "time", "workload": "rnn_text"}, "error": "killed"}],
            [],
            "killed",
        ),
    ],
)
def test_missing_data_is_said_and_does_not_end_the_report(tmp_path, undrawn, lines, verdicts, said):
    html, markdown, _ = written(tmp_path / "thin", lines, verdicts)
    assert said in "".join(Page(html).words)
    assert said in markdown


def test_an_mode_that_did_not_agree_or_did_not_run_has_no_ratio():
    lines = full_run()
    modes = lines[2]["arms"]
    assert lines[2]["workload"] == "big_matmul"
    modes["static-exact"] |= {"status": "disagree", "reason": "off by 2"}
    ratios = summarise(typed(lines)).ratios
    assert {ratio.cell.workload for ratio in ratios} == PLAN.keys() - {"big_matmul"}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_too_few_processes_have_no_whiskers_no_interval_and_no_winner(tmp_path, processes):
    lines = [line for line in full_run() if line.get("process", 0) < processes]
    regime = Regime("one-off", "inconclusive", 5.0)
    html, markdown, _ = written(
        tmp_path / "few", lines, [verdict("C6", "inconclusive", interval=None, regimes=(regime,))]
    )
    for page in ("".join(Page(html).words), markdown):
        assert "0.707× (no interval)" in page
        assert "5× (no interval)" in page
        assert "over 7 cells (workload and size): unclear in 7." in page
    rows = costs.draw_steady(summarise(typed(lines))).table.rows
    assert {row[6:] for row in rows} == {("(no interval)", "cannot tell")}


def test_figures_share_no_state_with_pyplot_and_rows_are_sorted():
    rows = costs.draw_steady(summarise(typed(full_run()))).table.rows
    best = {}
    for row in rows:
        best.setdefault(row[0], float(row[5].rstrip("×")))
    assert list(best.values()) == sorted(best.values())
    assert "matplotlib.pyplot" not in sys.modules


def test_an_engine_that_refuses_the_drawn_function_costs_one_figure_only(tmp_path, monkeypatch):
    def refuse():
        raise GraphError("no where here")

    monkeypatch.setattr(parity, "engine_graphs", refuse)
    html, _, files = written(tmp_path / "refused", [run_line()], [])
    assert "an engine refused the function: no where here" in html
    assert [file.name for file in files] == ["report.html", "report.md"]


def test_a_section_of_ones_own_stands_after_the_answer_and_holds_all_kinds_of_blocks(tmp_path, undrawn):
    inner = Section("Inside <it>", ("words & more",))
    blocks = ("first", Table(("a", "b"), (("1", "<2>"),), "lr", "Titled"), Bullets(("one", "two"), "Listed"),
              Terms((("name", "said"),)), Code(("a < b",)), Inline("<svg><circle r='2'/></svg>", "a circle"),
              VerdictMark("\u2713", "supported", "yes", "2x", "of what"), inner)  # fmt: skip
    report.write(tmp_path, typed([run_line()]), [], sections=[Section("My function", blocks)])
    html, markdown = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    words = "".join(Page(html).words)
    for said in (
        "first",
        "<2>",
        "Titled",
        "two",
        "Listed",
        "name",
        "a < b",
        "supported",
        "Inside <it>",
        "words & more",
    ):
        assert said in words, said
    assert words.index("The answer") < words.rindex("My function") < words.rindex("Environment")
    assert "<circle r='2'/>" in html
    assert markdown.index("## My function") < markdown.index("### Inside &lt;it&gt;") < markdown.index("## Environment")
    assert "a circle" in markdown
    assert "<circle" not in markdown


def test_an_answer_of_ones_own_takes_the_place_of_the_answer(tmp_path, undrawn):
    report.write(tmp_path, typed([run_line()]), [], answer=Section("In short", ("compile it",)))
    assert "## In short\n\ncompile it\n" in (tmp_path / "report.md").read_text()
    assert "The answer" not in (tmp_path / "report.html").read_text()


def test_a_claim_that_was_not_measured_has_no_section_and_one_line_among_the_limits(whole):
    html, markdown, _ = whole
    assert "C7: title of C7" not in markdown
    assert "* C7 title of C7: no such records" in markdown
    assert 'id="claim-c6"' in html
    assert 'id="claim-c7"' not in html


def test_the_figures_of_a_claim_stand_in_its_section(whole):
    markdown = whole[1]
    own = markdown[markdown.index("## C6: ") :]
    own = own[: own.index("\n## ")]
    assert "plots/steady.png" in own
    assert "plots/break-even.png" in own
    assert "plots/latency.png" not in own
