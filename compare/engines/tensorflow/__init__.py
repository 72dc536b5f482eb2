"""TensorFlow: the adapter, and its functions by our names."""
