"""What several stores are built of: records and moves, calls that go out together, connections that are shared."""
