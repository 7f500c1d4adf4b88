"""Which job runs when: the policy's decisions for real jobs, job classes, dependencies, forecasts."""
