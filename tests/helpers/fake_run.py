"""A run without workers: a machine that answers as a worker would."""

import msgspec

from compare.plans.settings import Settings
from compare.records import results
from compare.run.progress import Reporter
from compare.suite import stages as runs
from tests.helpers.records import lines, typed

OK = {"status": "ok", "output_error": 0.0, "gradient_error": 0.0, "tolerance": 1e-4, "reason": None}
TIMED = {
    "status": "ok", "reason": None, "build": 0.0, "first": 0.1, "calls_per_block": 4, "blocks": [0.1, 0.1],
    "stream": None, "compiles": 0, "compile_seconds": 0.0, "useful": 2, "computed": 2,
}  # fmt: skip
HELD = {
    "status": "ok", "reason": None, "peak": 10, "held": 0, "resident_growth": 0, "nodes": 1,
    "classes": dict.fromkeys(("parameters", "gradients", "structure", "plan", "saved", "workspace", "caches"), 1),
}  # fmt: skip
SETTINGS = Settings(processes=3, only="[ts]*y*")


class Machine:
    """Answers each job as a worker would, without measuring; `say` changes the answer for some."""

    def __init__(self, **say):
        self.jobs, self.say = [], say

    def __call__(self, job, timeout):
        if job.kind == "environment":
            return environment("one")
        self.jobs.append(job)
        said = self.say.get(f"{job.kind}_{job.workload}", self.say.get(job.kind))
        if said is KeyboardInterrupt:
            raise KeyboardInterrupt
        return typed(said(job) if said else raw(job))

    @property
    def labels(self):
        return [job.label for job in self.jobs]


class Waiting:
    """Workers that wait, in whose place a machine answers; `started` has the labels of each start, [] for an end."""

    def __init__(self, machine):
        self.run_job, self.started = machine, []

    def start(self, jobs, limit):
        self.started.append(list(jobs))

    def close(self):
        self.started.append([])


def head(job):
    return msgspec.to_builtins(job.name)


def environment(cpu):
    told = {"cpu": cpu, "python": "3", "numpy": "2", "commit": "a"}
    return typed({"kind": "environment", "environment": told})


def answered(job):
    return typed(raw(job))


def raw(job):
    if job.kind == "gradients":
        return {**head(job), "checks": 1, "passed": 1, "failures": [], "by_op": {}}
    if job.kind in ("program", "fault", "edit"):
        return {**head(job), f"{job.kind}s": []}
    if job.kind == "prototype":
        return {**head(job), "tasks": []}
    if job.kind in ("crossover", "crossover memory"):
        return {**head(job), "cells": []}
    if job.kind == "lengths":
        return {**head(job), "examples": [], "arms": {}}
    if job.kind == "parity":
        modes = {"dynamic": OK, "static-exact": OK}
        return {**head(job), "agree": True, "arms": modes, "same_graph": True, "kernel_calls": {}}
    return {**head(job), "arms": dict.fromkeys(job.modes, TIMED if job.kind == "time" else HELD)}


def parity_with(mode, status):
    row = {**OK, "status": status, "reason": "because"}
    return lambda job: {**raw(job), "agree": status == "unsupported", "arms": {**raw(job)["arms"], mode: row}}


def failing(job):
    return {"kind": "failure", "job": head(job), "error": "the worker died of SIGSEGV"}


def go(directory, machine=None, settings=SETTINGS, **kwargs):
    machine = machine or Machine()
    return runs.run(directory, settings, Reporter(), execute=machine, **kwargs), machine


def kinds(directory):
    return [r["kind"] for r in lines(directory / results.RESULTS)]
