"""What jobs are given of the machine, and how they are held to it."""
