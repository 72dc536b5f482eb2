"""Questions about a function without a worker: this process finds what the worker would answer, and need not start."""

import gc

from compare.own import run, workers
from compare.records.results import encode, parse_line
from compare.run import worker


def answered_by(monkeypatch, answer):
    """From now on a function of this process answers each job of a comparison, and no worker starts."""
    monkeypatch.setattr(workers, "ask", answer)
    monkeypatch.setattr(workers.Workers, "ahead", lambda *_: None)


def asked_here(monkeypatch):
    """From now on a test's function is looked at in this process; what ends its process would end the test."""

    def answer(job, *_):
        gc.freeze()  # what the question before has imported is not walked by each collection below
        return parse_line(encode(worker.perform(job)))

    answered_by(monkeypatch, answer)
    monkeypatch.setattr(run, "run_job", answer)
