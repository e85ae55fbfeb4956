"""Workers, requirements and replicas in the database."""
