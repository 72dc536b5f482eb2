"""The suite: what a run of our workloads measures, stage by stage, and what is made of its records."""
