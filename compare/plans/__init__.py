"""Plans: subjects become jobs, by mode, instrument, process, and cold or warm; a runner executes them.

Read `comparison` for a function, whose later jobs depend on the answers of the first. A run of the suite has `settings`
(presets and cells) and `jobs` (cells become jobs).
"""
