"""C1: programs with control flow, each as ordinary Python and as a fixed graph takes it."""
