"""The running of jobs, whatever they measure.

Read `runner` (each job in turn, each record appended), then `executors` (where: here, in processes, on a cluster) and
`processes` (one job, one fresh interpreter, which is ended when it makes no progress). `start` and `worker` are the
other end of the pipe. `environment` describes the machine and the code of a measurement and draws the layout of memory,
and `progress` shows how far a run is.
"""
