"""What serves several claims: each instrument a package whose `measure` makes the record of a job."""
