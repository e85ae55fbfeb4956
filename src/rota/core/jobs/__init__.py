"""Jobs as values: definitions, retry and unique policies, HTTP and command jobs, pipelines."""
