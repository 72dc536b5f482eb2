"""C8: models that change while they train, and what each edit costs an engine."""
