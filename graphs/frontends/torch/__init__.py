"""PyTorch's words for the op library: its functions, a file for each topic, its `linalg`, and how it prints tensors.

    names.py         how a definition becomes names     promotion.py   which dtype a result has
    functions.py     all of them, by name               words.py       how functions are called; the CPU
    methods.py       what a tensor has beside them      guard.py       what a wrong call says

    pointwise.py     of one tensor, by element          products.py    vectors and matrices
    arithmetic.py    of two; comparisons and logic      dtypes.py      NumPy's, with PyTorch's names
    numbers.py       what few programs use              linalg.py      torch.linalg
    reductions.py    over axes                          systems.py     equations, and factors that solve them
    shapes.py        shapes and parts                   special.py     torch.special
    joining.py       put together                       sampling.py    read between elements: of nn.functional
    picking.py       picked, put, sorted                printing.py    the text of a tensor

What stands here reads arrays and ops alone, and so works on symbols, too; the dynamic engine offers it to its users.
Where PyTorch and the array API standard differ, these do what PyTorch does, and `graphs` what the standard says.
"""
