"""C4: what padding, batching and compiling cost where the sizes of inputs vary."""
