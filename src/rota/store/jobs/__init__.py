"""Jobs in the database: pause and cancel as a whole, data jobs, pipelines."""
