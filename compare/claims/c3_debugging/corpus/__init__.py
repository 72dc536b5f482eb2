"""The seeded faults, a family a file. Each marks the line at fault by a comment."""
