"""Numbers, lists and lines as text, the same on every page, terminal and message."""
