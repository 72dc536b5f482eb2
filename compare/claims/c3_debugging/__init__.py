"""C3: seeded faults, each a line of a small model made wrong, and a scripted debugger that looks for them."""
