"""The running scheduler: real jobs on this machine under a planned policy, with the decision functions that were simulated."""
