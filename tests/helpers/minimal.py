"""A program that imports every module of the package, where optional packages may be missing.

Packages named as arguments are treated as if they were not installed. Prints a JSON object: each
module that could not be imported, and the message of the error.
"""

import importlib
import json
import sys
from pathlib import Path

sys.modules.update(dict.fromkeys(sys.argv[1:]))  # importing them raises ModuleNotFoundError

import probformer  # noqa: E402
from probformer.errors import MissingPackage  # noqa: E402

assert "torch" not in sys.modules
root = Path(probformer.__file__).parent
missing = {}
for path in sorted(root.rglob("*.py")):
    parts = path.relative_to(root.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    try:
        importlib.import_module(name)
    except MissingPackage as error:
        missing[name] = str(error)
print(json.dumps(missing))
