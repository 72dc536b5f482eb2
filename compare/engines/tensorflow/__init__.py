"""TensorFlow: the adapter, a step, and its functions by our names. Read `adapter` first."""
