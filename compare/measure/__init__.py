"""Measuring: one job in one fresh worker process, pinned to one core, one record back."""
