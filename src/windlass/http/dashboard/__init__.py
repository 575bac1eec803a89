"""The dashboard: pages for people, beside the operations that they are made of."""
