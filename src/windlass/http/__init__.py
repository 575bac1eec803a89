"""Any store over HTTP: who may do what, the routes of `/api/v1`, and the process that serves them."""
