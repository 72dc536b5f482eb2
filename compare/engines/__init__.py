"""What is measured side by side: the arms, each a way for an engine to run a workload."""
