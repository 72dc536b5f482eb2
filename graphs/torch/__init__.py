"""PyTorch's words for the op library: its functions and its `linalg`, how it prints tensors, its backward names.

What stands here reads arrays and ops alone; the dynamic engine offers it to its users.
"""
