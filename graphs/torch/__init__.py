"""PyTorch's words for the op library: its functions, a file for each topic, its `linalg`, and how it prints tensors.

    pointwise.py     element by element           promotion.py   which dtype a result has
    reductions.py    over axes                    words.py       how functions are called
    shapes.py        shapes, parts, joining       methods.py     the methods of a tensor: all of these
    picking.py       picked, put, sorted          devices.py     the CPU, and no other
    products.py      vectors and matrices         printing.py    the text of a tensor

What stands here reads arrays and ops alone, and so works on symbols, too; the dynamic engine offers it to its users.
Where PyTorch and the array API standard differ, these do what PyTorch does, and `graphs` what the standard says.
"""
