"""The comparison: workloads, measurements, claims and their verdicts."""
