"""Something to bind to a statement that is only to be explained."""

import re


def some_parameters(statement: str) -> dict[str, str] | list[str]:
    """Return a value for each parameter, by name or by place."""
    text = "\n".join(line for line in statement.splitlines() if not line.strip().startswith("--"))
    if names := re.findall(r":(\w+)", text):
        return dict.fromkeys(names, "[]")
    places = re.findall(r"\?(\d*)", text)
    return ["[]"] * (len(places) if "" in places else max(map(int, places), default=0))
