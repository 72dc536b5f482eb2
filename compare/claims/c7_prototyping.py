"""C7: dynamic graphs make prototyping faster.

Judged from lines of kind "prototype", one for each task: `task`, and for each engine under `engines` the
seconds from an edit to the first result (`edit_to_result`), the `lines` of model code, and the failures
`caught` before anything ran.
"""

from __future__ import annotations

from compare.claims.base import Claim, Effect, Finding, Record, Records, judged, not_measured
from compare.stats import Interval, geometric_mean_interval

MIN_TASKS = 3
"""Fewer tasks than this have no interval worth telling."""


def find(records: Records) -> Finding:
    """Never more than "proxy only": no measurement of a machine tells how fast a person prototypes."""
    tasks = sorted((r for r in records if r.get("kind") == "prototype"), key=lambda r: str(r["task"]))
    if not tasks:
        return not_measured("prototyping tasks")
    if len(tasks) < MIN_TASKS:
        return Finding("inconclusive", (f"{len(tasks)} tasks were measured, {MIN_TASKS} are needed",))
    wait, lines = _ratio(tasks, "edit_to_result"), _ratio(tasks, "lines")
    return Finding(
        "proxy only",
        (f"over {len(tasks)} tasks; failures caught before running: {_caught(tasks)}",),
        Effect("seconds from edit to first result, static / dynamic", wait.estimate, "ratio"),
        wait,
        (
            judged("from edit to first result", wait),
            judged("lines of model code", lines),
        ),
    )


def _ratio(tasks: list[Record], name: str) -> Interval:
    engines = [task["engines"] for task in tasks]
    return geometric_mean_interval([[e["static"][name] / e["dynamic"][name]] for e in engines])


def _caught(tasks: list[Record]) -> str:
    static, dynamic = (sum(t["engines"][e]["caught"] for t in tasks) for e in ("static", "dynamic"))
    return f"static {static}, dynamic {dynamic}"


CLAIM = Claim(
    id="C7",
    title="Dynamic graphs make prototyping faster",
    statement="With a dynamic graph an idea is tried as fast as it is typed: there is nothing to declare, "
    "build or compile, and the model is plain code.",
    opposite="A traced function is the same plain code, it compiles in less time than a person needs to "
    "look up, and what it refuses before running saves the failed run.",
    measured="Proxies, and no more than that: seconds from an edit to the first result, lines of model code "
    "for the same task, and failures caught before anything ran.",
    rule="Always proxy only, for none of these measures a person at work. Each proxy's ratio static / "
    "dynamic is given with its 95% interval (bootstrap over tasks) and its own label by the smallest "
    f"effect of 5%. Inconclusive under {MIN_TASKS} tasks.",
    find=find,
    not_tested=(
        "programmers: time to a working model, errors made, what they prefer",
        "long projects, where reading code costs more than writing it",
    ),
)
