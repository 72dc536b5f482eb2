"""How jobs are run: worker processes, executors, and how far a run is."""
