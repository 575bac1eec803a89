"""Numbers for Prometheus: of one server, and of a whole store."""
