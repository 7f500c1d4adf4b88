"""Which job runs when: the policy's decisions about real jobs, classes of jobs, dependencies, forecasts."""
