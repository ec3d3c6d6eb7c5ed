"""Tables in place: engines that answer SQL, and the one way to type the columns of a log."""
