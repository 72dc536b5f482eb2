"""C2: every op against finite differences."""
