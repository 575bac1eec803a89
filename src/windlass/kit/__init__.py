"""What stores on a server are built of: records as texts, calls that go out together, connections that are shared."""
