"""Names of jobs: what a function declares, and the payload its signature accepts."""
