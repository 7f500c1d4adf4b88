"""Files that outlive the daemon: the database, the event log, private files."""
