"""How jobs are run, whatever they measure.

Read `runner` (each job in turn, each record appended), then `executors` (where: here, in processes, on a cluster) and
`processes` (one job, one fresh interpreter, which is ended when it makes no progress). `start` and `worker` are the
other end of the pipe. `layout` draws where memory lies, `environment` says on what machine a number was measured,
`product` which files measured it, `progress` how far a run is.
"""
