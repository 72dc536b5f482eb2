"""What the user calls: executables, functions that compile themselves, shape policies, saved graphs, debugging."""
