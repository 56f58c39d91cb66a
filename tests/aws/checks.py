"""The list of checks, in the order in which they run."""

CHECKS = []


def check(name, is_long=False, functions=True):
    """Adds a function to the checks. It is given the stack.

    A long one runs only when OSPREY_LONG is set, and one that needs the functions not without them.
    """

    def add(function):
        CHECKS.append((name, is_long, functions, function))
        return function

    return add
