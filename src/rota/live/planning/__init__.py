"""The plan in use, what is learnt about the jobs, and when the plan is made anew."""
