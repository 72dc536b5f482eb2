"""Our own two engines, as one adapter among the others.

`steps` has their modes. A file of PyTorch's runs in them too: `standin` lets `torch` mean `dynamic`, `programs` says
what such a function holds and changes, and `training` traces a whole training step.
"""
