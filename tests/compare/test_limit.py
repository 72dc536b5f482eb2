"""A limit in seconds: what does not end is ended, whatever it catches, and all else is left as it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from compare.engines import process
from compare.engines.process import LimitError, SpentSeconds, limit_seconds
from tests.helpers.machine import Machine
from tests.helpers.together import together

SOON = 0.01


def forever():
    while True:
        pass


def deaf():
    while True:
        with suppress(Exception):
            forever()


def swallowing():
    try:
        forever()
    except BaseException:  # noqa: BLE001  (as badly behaved code does)
        forever()


def test_what_does_not_end_is_ended():
    with pytest.raises(LimitError, match=r"it did not end in 0\.01 s"), limit_seconds(SOON):
        forever()


def test_a_compiler_that_takes_every_error_for_the_users_cannot_swallow_the_limit():
    with pytest.raises(LimitError), limit_seconds(SOON):
        deaf()


def test_an_alarm_that_was_swallowed_comes_again(monkeypatch):
    monkeypatch.setattr(process, "AGAIN", SOON)
    with pytest.raises(LimitError), limit_seconds(SOON):
        swallowing()


def test_an_alarm_that_rings_while_a_block_is_left_neither_ends_it_nor_outlives_it(monkeypatch):
    stop = process._Alarm.stop

    def ring_and_stop(alarm):
        signal.raise_signal(signal.SIGALRM)
        stop(alarm)

    monkeypatch.setattr(process._Alarm, "stop", ring_and_stop)
    before = signal.getsignal(signal.SIGALRM)
    with limit_seconds(60):
        total = 1 + 1
    assert total == 2
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_what_ends_in_time_gives_its_result_and_its_own_errors():
    with limit_seconds(60):
        found = 1 + 1
    assert found == 2
    with pytest.raises(ZeroDivisionError), limit_seconds(60):
        1 / 0  # noqa: B018


def test_afterwards_there_is_no_alarm_and_the_handler_of_before():
    before = signal.getsignal(signal.SIGALRM)
    with limit_seconds(60):
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    with pytest.raises(LimitError), limit_seconds(SOON):
        forever()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_another_thread_has_no_limit():
    ended = []

    def run():
        with limit_seconds(SOON):
            threading.Event().wait(5 * SOON)
            ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended


@together(
    ("threads", "spent"),
    [
        ({}, 2.0),  # the system tells nothing
        ({"main": (0.0, 0.0)}, 2.0),  # it hangs
        ({"main": (2.0, 0.0)}, 2.0),
        ({"main": (0.5, 1.5)}, 0.5),
        ({"main": (0.0, 0.0), "compiler": (0.5, 1.5)}, 0.5),
        ({"main": (0.5, 0.5)}, 1.5),  # it ran, waited for a core, and waited for something else
        ({"first": (1.0, 1.0), "second": (1.0, 1.0)}, 2.0),  # they take turns on one core
        ({"first": (2.0, 0.0), "second": (2.0, 0.0)}, 2.0),
    ],
)
def test_a_second_counts_in_which_somebody_had_a_core_or_nobody_waited_for_one(threads, spent):
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(patch)
        clock = SpentSeconds(0)
        machine.passes(2.0, **threads)
        assert clock.look() == pytest.approx(spent)


def test_a_process_that_has_ended_takes_nothing_back(monkeypatch):
    machine = Machine(monkeypatch)
    clock = SpentSeconds(0)
    machine.passes(1.0, main=(0.0, 0.0), compiler=(1.0, 0.0))
    clock.look()
    machine.passes(1.0, main=(1.0, 0.0))
    assert clock.look() == pytest.approx(2.0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell it")
def test_the_system_tells_what_a_process_and_those_that_it_has_started_ran_and_waited():
    before = process.shares(os.getpid())
    assert str(os.getpid()) in before
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout.readline()
            while (ran := process.shares(os.getpid())[str(child.pid)][0]) < 1e7:
                time.sleep(0.01)
            assert ran < 60e9
        finally:
            child.kill()
    assert process.shares(2**22 + 1) == {}  # there is no such process


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell it")
def test_a_block_that_waits_for_a_core_is_given_the_time(monkeypatch):
    """Here others have nine tenths of the core."""

    def told(_, began=time.monotonic()):  # noqa: B008  (when the test begins)
        passed = time.monotonic() - began
        return {"main": (int(passed * 1e8), int(passed * 9e8))}

    monkeypatch.setattr(process, "shares", told)
    with limit_seconds(1.0):
        time.sleep(2.0)
    with pytest.raises(LimitError), limit_seconds(0.05):
        time.sleep(20)
