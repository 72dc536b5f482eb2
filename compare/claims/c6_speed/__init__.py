"""C6: the seconds that each engine takes for a step."""
