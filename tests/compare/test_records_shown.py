"""A record shows itself in a notebook."""

from tests.helpers.claim_records import cell
from tests.helpers.records import typed


def test_a_record_is_a_table_of_its_fields():
    (record, *_) = (r for r in typed(cell("a<b", {"dynamic": {"seconds": 0.5}}, processes=1)) if hasattr(r, "modes"))
    shown = record._repr_html_()
    assert f"<caption>{str(record.job).replace('<', '&lt;')}</caption>" in shown
    assert "<th>workload</th><td>a&lt;b</td>" in shown
    assert "<th>modes dynamic status</th><td>ok</td>" in shown
    assert "<b" not in shown.replace("a&lt;b", "")


def test_long_lists_are_said_by_their_median():
    times = [r for r in typed(cell("w", {"dynamic": {"seconds": 0.5}}, processes=1)) if r.job.kind == "time"]
    shown = times[0]._repr_html_()
    blocks = times[0].modes["dynamic"].blocks
    assert f"<th>modes dynamic blocks</th><td>{len(blocks)} numbers, median 0.5" in shown
