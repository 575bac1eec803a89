"""A mark for arguments that nobody should read over somebody's shoulder."""


class Secret:
    """Marks an argument whose value is shown to nobody: `token: Annotated[str, Secret]`.

    Its name is kept with the handler, so that whoever shows the arguments of a job can leave the value out. The value
    itself is stored as it is: it is hidden, not encrypted.
    """
