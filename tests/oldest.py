"""Print pip constraints that hold every dependency at the lowest version that pyproject.toml allows: see `make oldest`."""

import re
import sys
import tomllib
from pathlib import Path


def constraints(extras):
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *(r for extra in extras for r in project["optional-dependencies"][extra])]
    for requirement in dict.fromkeys(listed):
        name, _, version = requirement.partition(">=")
        parts = re.sub(r"[^0-9.]", "", version).split(".")
        yield f"{name}=={'.'.join([*parts, *['0'] * (3 - len(parts))])}"


if __name__ == "__main__":
    print("\n".join(constraints(sys.argv[1:])))
