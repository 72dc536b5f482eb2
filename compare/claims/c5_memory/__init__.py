"""C5: the bytes that each engine holds for a step."""
