"""Schedules that code declares, and the service of a server that makes the jobs of all of them."""
