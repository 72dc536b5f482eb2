"""What rewritten functions call: Python's meaning for values that are known, control flow of the graph for others."""
