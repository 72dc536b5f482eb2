"""The documentation site: its pages are laid out from the repository, and what is built is checked."""
