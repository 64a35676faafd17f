"""The error a command ends with: one clear line, no traceback."""


class Failure(Exception):
    """Something the user can understand and mend; the message is the line they see."""
