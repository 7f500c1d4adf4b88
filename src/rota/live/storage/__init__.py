"""What survives the daemon: the database, the event log, private files."""
