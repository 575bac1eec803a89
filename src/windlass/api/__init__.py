"""The JSON of `/api/v1`: its shapes, its errors, its roles and the table of its operations. Both ends import it."""
