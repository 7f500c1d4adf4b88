"""What people see of the scheduler: status, explanations, metrics."""
