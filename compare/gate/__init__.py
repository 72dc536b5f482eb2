"""A gate for CI: checks as pytest fixtures (`plugin`, `checks`), and `graphduel compare --fail-if` (`rules`).

A rule asks for one of the `quantities` of a mode. `plugin` is a pytest entry point, and imports only pytest until a
test uses a fixture.
"""
