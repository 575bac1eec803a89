"""The handlers of the operations: short functions, each of which calls the client or its store."""
