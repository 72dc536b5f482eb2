"""A limit in seconds: what does not end is ended, whatever it catches, and all else is left as it is."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

import pytest

from compare.engines import limit
from compare.engines.limit import LimitError, within

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
    with pytest.raises(LimitError, match=r"it did not end in 0\.01 s"), within(SOON):
        forever()


def test_a_compiler_that_takes_every_error_for_the_users_cannot_swallow_the_limit():
    with pytest.raises(LimitError), within(SOON):
        deaf()


def test_an_alarm_that_was_swallowed_comes_again(monkeypatch):
    monkeypatch.setattr(limit, "AGAIN", SOON)
    with pytest.raises(LimitError), within(SOON):
        swallowing()


def test_what_ends_in_time_gives_its_result_and_its_own_errors():
    with within(60):
        found = 1 + 1
    assert found == 2
    with pytest.raises(ZeroDivisionError), within(60):
        1 / 0  # noqa: B018


def test_afterwards_there_is_no_alarm_and_the_handler_of_before():
    before = signal.getsignal(signal.SIGALRM)
    with within(60):
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    with pytest.raises(LimitError), within(SOON):
        forever()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_another_thread_has_no_limit():
    ended = []

    def run():
        with within(SOON):
            threading.Event().wait(5 * SOON)
            ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended
