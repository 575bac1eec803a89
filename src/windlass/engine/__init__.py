"""What runs beside user code: the background services. It knows the store by its protocol and the time by its clock."""
