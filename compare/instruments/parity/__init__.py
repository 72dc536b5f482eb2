"""Parity: whether outputs and gradients of all arms agree, before anything of a cell is measured."""
