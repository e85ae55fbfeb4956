"""Checks of coordination: dependencies, external jobs, replicas, rates, quotas, pipelines."""
