"""A function becomes a graph: symbols, control flow, and differentiation, which appends to the graph."""
