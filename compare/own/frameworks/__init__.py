"""A function of the user's, written in a framework: is compiling it worth it here, from when on, and why."""
