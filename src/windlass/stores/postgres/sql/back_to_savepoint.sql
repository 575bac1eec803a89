rollback to savepoint windlass_mark
