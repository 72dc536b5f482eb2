"""The seconds of a compilation by phases of the compiler: as PyTorch records them, and as they are told."""

from types import SimpleNamespace

import pytest

from compare.engines.torch import dynamo
from compare.records.cells import CompilationRow, Compilations, CompiledRow
from compare.report import compiled


def recorded(dynamo_us=None, aot_us=None, inductor_us=None, machine_us=None):
    fields = zip(dynamo.PHASES.values(), (dynamo_us, aot_us, inductor_us, machine_us), strict=True)
    return SimpleNamespace(**dict(fields))


@pytest.mark.parametrize(
    ("passes", "phases"),
    [
        ([recorded(10e6, 8e6, 5e6, 2e6)], {"Dynamo": 2, "AOTAutograd": 3, "Inductor": 3, "machine code": 2}),
        (
            [recorded(10e6, 8e6, 5e6, 2e6), recorded(inductor_us=4e6, machine_us=3e6)],
            {"Dynamo": 2, "AOTAutograd": 3, "Inductor": 4, "machine code": 5},
        ),
        ([recorded(10e6, 8e6)], {"Dynamo": 2, "AOTAutograd": 8}),
        ([recorded(10e6, 8e6, 8e6, 0)], {"Dynamo": 2, "Inductor": 8}),
        ([recorded(3e6)], {"Dynamo": 3}),
        ([SimpleNamespace()], {}),
    ],
)
def test_each_phase_has_its_own_seconds_and_all_add_up(passes, phases):
    seen = dynamo._phases(passes)
    assert seen == pytest.approx(phases)
    outermost = sum(max([*filter(None, vars(each).values()), 0.0]) / 1e6 for each in passes)
    assert sum(seen.values()) == pytest.approx(outermost)


def row(*made):
    return CompiledRow("ok", None, [CompilationRow("a new shape", *each) for each in made])


def test_the_phases_of_all_graphs_of_a_mode_are_told_longest_first():
    modes = {
        "eager": row(),
        "compile": row((5.0, {"Dynamo": 1.0, "Inductor": 4.0}), (3.5, {"Dynamo": 0.5, "Inductor": 3.0})),
        "jit": row((1.0,), (None,)),
    }
    record = Compilations(workload="f", size="given", version="1", modes=modes)
    said = [words for words in compiled.sentences([record]) if " graph" in words]
    assert said == ["compile compiled 2 graphs in 8.5 s: Inductor 7 s and Dynamo 1.5 s."]
    table = compiled.reasons([record]).blocks[0]
    assert table.rows[0][-2:] == ("9.5 s", "Inductor 7 s and Dynamo 1.5 s")
