"""The seeded faults, a family a file; `fault` says what one is. Each marks the line at fault by a comment."""
