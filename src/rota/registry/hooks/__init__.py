"""Context managers of an application: around handlers, and around the life of a worker."""
