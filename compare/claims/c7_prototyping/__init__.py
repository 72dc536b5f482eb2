"""C7: a line of a model is changed, and the first result of the changed model waited for."""
