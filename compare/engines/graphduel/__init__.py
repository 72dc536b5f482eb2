"""The adapter of our own two engines.

`adapter` has the class and `steps` the modes. A file written for PyTorch runs in our engines too: `standin` lets
`torch` mean `dynamic`, `programs` finds what such a function holds and changes, and `training` traces a whole training
step.
"""
