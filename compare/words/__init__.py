"""How numbers, lines and tables read: what every page, terminal and message is written with."""
