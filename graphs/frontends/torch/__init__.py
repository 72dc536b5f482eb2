"""PyTorch's words for the op library: its functions, a file for each topic, its `linalg`, and how it prints tensors.

    pointwise.py     of one tensor, by element    promotion.py   which dtype a result has
    arithmetic.py    of two                       words.py       how functions are called
    comparing.py     comparisons and logic        methods.py     the methods of a tensor: all of these
    reductions.py    over axes                    devices.py     the CPU, and no other
    shapes.py        shapes and parts             printing.py    the text of a tensor
    joining.py       put together
    picking.py       picked, put, sorted
    products.py      vectors and matrices         numbers.py     what few programs use, by element
    quantiles.py     read off sorted elements     parts.py       written into a part
    linalg.py        torch.linalg                 systems.py     equations, and factors that solve them
    special.py       torch.special                sampling.py    read between elements: of nn.functional

What stands here reads arrays and ops alone, and so works on symbols, too; the dynamic engine offers it to its users.
Where PyTorch and the array API standard differ, these do what PyTorch does, and `graphs` what the standard says.
"""
