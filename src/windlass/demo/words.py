"""Numbers in words."""


def jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
