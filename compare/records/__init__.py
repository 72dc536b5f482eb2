"""What a run writes and reads: its lines and their schema, the journal, files, and what keeps two runs apart."""
