"""A gate for CI: checks as fixtures of pytest, and the rules and files of `graphduel compare --fail-if`.

`plugin` is an entry point of pytest, and imports pytest alone until a test asks for a fixture.
"""
