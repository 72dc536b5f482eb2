"""What serves several claims: each instrument a folder, whose `measure` makes the record of a job. None judges."""
