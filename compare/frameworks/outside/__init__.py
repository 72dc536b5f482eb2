"""The claims outside: the same workloads and checks on PyTorch, TensorFlow, JAX and autograd, by the same rules.

What is compared is an arm of a framework with the eager one of the same framework.
"""
