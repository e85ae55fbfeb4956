"""The simulated application: jobs, and what their handlers do."""
