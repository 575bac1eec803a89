"""A mark for arguments that nobody should read over somebody's shoulder."""


class Secret:
    """Marks an argument whose value is shown to nobody: `token: Annotated[str, Secret]`.

    It may stand on a parameter, or on a field of a dataclass or model inside one. Its path is stored with the job, so
    that whoever shows the arguments leaves the value out. The value itself is stored as it is: it is hidden, not
    encrypted, and the handler gets it.
    """
