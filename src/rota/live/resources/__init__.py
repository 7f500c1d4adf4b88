"""Which resources of the machine each job gets, and how a job is held to its share."""
