"""What is PyTorch's name alone, beside the tape: functions of layers, rare names, and files of tensors.

All but `save` and `load` is loaded when it is asked for. Modules that a program may import by PyTorch's path, as in
`from torch.func import vmap`, stand in `dynamic/`.
"""
