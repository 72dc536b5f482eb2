"""PyTorch's words for the op library: its functions, a file for each topic, its `linalg`, and how it prints tensors.

    names.py         how a definition becomes names;    words.py       how functions are called, which dtype a
                     what a wrong call says                            result has; the CPU
    functions.py     all of them, by name               dtypes.py      NumPy's, with PyTorch's names
    methods.py       what a tensor has beside them

    arithmetic.py    by element: of one tensor, of      products.py    vectors and matrices
                     two; comparisons and logic         linalg.py      torch.linalg
    numbers.py       whether numbers are real, close    systems.py     equations, and factors that solve them
    reductions.py    over axes                          sampling.py    read between elements: of nn.functional
    shapes.py        shapes and parts                   picking.py     picked and put
    joining.py       put together                       sorting.py     sorted and counted
                                                        printing.py    the text of a tensor

What stands here reads arrays and ops alone, and so works on symbols, too; the dynamic engine offers it to its users.
Where PyTorch and the array API standard differ, these do what PyTorch does, and `graphs` what the standard says.
"""
