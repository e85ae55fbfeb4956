"""Routes about quotas."""
