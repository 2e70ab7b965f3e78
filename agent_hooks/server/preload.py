"""The beginning of the program of the generated file (see `stub`): it loads C modules that are files from known places.

The interpreter would search each module in several directories, which takes as long as loading it.
"""

import gc
import sys

# The import of `typing` would double the time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def preload(version: str, files: "Mapping[str, str]") -> None:
    """Load modules from their files, where the Python of this `version` has them; the others are left to `import`.

    Garbage is not collected from now on: the process ends soon, and one collection takes a hundredth of its time.

    `version`: that of the Python that found the files.  Another one may crash when it loads them.
    """
    gc.disable()
    if version != sys.version:
        return
    # Both are in each interpreter that can load a module from a file.
    import _imp
    from _frozen_importlib import ModuleSpec

    for name, file in files.items():
        spec = ModuleSpec(name, None, origin=file)
        try:
            module = _imp.create_dynamic(spec)
            _imp.exec_dynamic(module)
        except ImportError:
            # The file is gone, so that the search has to find another one.
            continue
        sys.modules[name] = module
