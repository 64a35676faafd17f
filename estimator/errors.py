"""The root of the errors a user can understand and mend. The command line shows their message as one line."""


class FitmartError(Exception):
    """The message is one clear line: what is wrong, and where."""
