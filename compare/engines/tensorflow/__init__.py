"""The adapter of TensorFlow, its step, and its functions by our names. Read `adapter` first."""
