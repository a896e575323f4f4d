"""Where the program `attache` of this package is."""

import os
import sys
import sysconfig


def find_program():
    """Returns the path of the program that was installed with this package."""
    name = "attache.exe" if sys.platform == "win32" else "attache"
    directories = [
        sysconfig.get_path("scripts"),
        # pip install --user
        sysconfig.get_path("scripts", "nt_user" if os.name == "nt" else "posix_user"),
        # pip install --target
        os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"),
    ]
    for directory in directories:
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("no `{}` in {}; install attache-acp again".format(name, " or ".join(directories)))
