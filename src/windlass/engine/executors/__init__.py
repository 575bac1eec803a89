"""Where handlers run that are not coroutines: in threads, and in child processes that can be killed."""
