"""A workload of ours in a framework: the same gate, first calls, steady state and bytes."""
