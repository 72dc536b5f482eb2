"""A run without workers: a machine that answers as a worker would."""

from compare.records import results
from compare.run import stages as runs
from compare.run.progress import Reporter
from compare.run.settings import Settings

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
            return {"kind": "environment", "environment": {"cpu": "one", "python": "3", "numpy": "2", "commit": "a"}}
        self.jobs.append(job)
        said = self.say.get(f"{job.kind}_{job.workload}", self.say.get(job.kind))
        if said is KeyboardInterrupt:
            raise KeyboardInterrupt
        return said(job) if said else plain(job)

    @property
    def labels(self):
        return [job.label for job in self.jobs]


def plain(job):
    if job.kind == "gradients":
        return {**job.head, "checks": 1, "passed": 1, "failures": [], "by_op": {}}
    if job.kind in ("program", "fault", "edit"):
        return {**job.head, f"{job.kind}s": []}
    if job.kind == "parity":
        arms = {"dynamic": OK, "static-exact": OK}
        return {**job.head, "agree": True, "arms": arms, "same_graph": True, "kernel_calls": {}}
    return {**job.head, "arms": dict.fromkeys(job.arms, TIMED if job.kind == "time" else HELD)}


def parity_with(arm, status):
    row = {**OK, "status": status, "reason": "because"}
    return lambda job: {**plain(job), "agree": status == "unsupported", "arms": {**plain(job)["arms"], arm: row}}


def failing(job):
    return {"kind": "failure", "job": job.head, "error": "the worker died of SIGSEGV"}


def go(directory, machine=None, settings=SETTINGS, **kwargs):
    machine = machine or Machine()
    return runs.run(directory, settings, Reporter(), execute=machine, **kwargs), machine


def kinds(directory):
    return [r["kind"] for r in results.read(directory / results.RESULTS)]
