"""How jobs are run: worker processes, executors, the gate, and how far a run is."""
