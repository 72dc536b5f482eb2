"""A gate for CI: checks as pytest fixtures (`plugin`, `checks`), and `graphduel compare --fail-if` (`rules`).

`plugin` is a pytest entry point, and imports only pytest until a test uses a fixture.
"""
