"""Advice on a function in a framework before it is compiled: what its ops are worth by a model calibrated here."""
