"""How numbers and lines read: what every page, table and message is written with."""
