"""What is PyTorch's name alone, beside the tape: devices that are not there, files, distributions, `torch.func`.

All but `save` and `load` is loaded when it is asked for. Modules that a program may import by PyTorch's path, as in
`from torch.func import vmap`, stand in `dynamic/` by three lines each.
"""
