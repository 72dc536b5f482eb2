"""What serves several claims: an instrument is a file or a folder whose `measure` makes a record. None judges."""
