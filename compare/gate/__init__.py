"""A gate for CI: checks as fixtures of pytest, and the rules and files of `graphduel compare --fail-if`."""
