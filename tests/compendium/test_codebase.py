"""The code behind a function: imports are followed through every form, prose does not count."""

import pytest

from compendium import codebase

ENTER = "from house.front import open_door as enter\nLAZY = {'late': 'attic'}\n"
DOOR = "def open_door():\n    from house.cellar import key\n    return key\n"
TYPED = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.attic\n"
MODULES = {
    "house/__init__.py": ENTER,
    "house/front.py": "import numpy\n" + DOOR,
    "house/cellar.py": "from house import hall\nkey = 1\n",
    "house/hall.py": TYPED,
    "house/attic.py": "from . import garden\n",
    "house/garden.py": "",
    "yard.py": "import scipy.linalg\n",
}


@pytest.fixture
def lib(plant, tmp_path):
    plant(MODULES)
    return tmp_path


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("from house import enter", ["house.cellar", "house.front", "house.hall"]),
        ("import house.front", ["house.cellar", "house.front", "house.hall"]),
        ("from house import hall", ["house.hall"]),
        ("from house import late", ["house.attic", "house.garden"]),
        ("from house.attic import garden as g", ["house.attic", "house.garden"]),
        ("import house", ["house", "house.cellar", "house.front", "house.hall"]),
        ("def f():\n    import yard", ["yard"]),
        ("import numpy", []),
    ],
)
def test_imports_are_followed_to_the_defining_modules(lib, statement, expected):
    (lib / "start.py").write_text(statement)
    assert list(codebase.reached(["start"], lib)) == sorted([*expected, "start"])


def test_packages_from_outside(lib):
    assert codebase.foreign([lib / "house" / "front.py", lib / "yard.py"]) >= {"numpy", "scipy"}


def test_prose_changes_no_hash_and_a_sign_does(tmp_path):
    path = tmp_path / "m.py"
    path.write_text('"""One."""\ndef f(x):\n    """Two."""\n    return x + 1  # three\n')
    first = codebase.digest(path)
    path.write_text('"""Uno, and more."""\n\n\ndef f(x):\n    # drei\n    return (x\n    + 1)\n')
    assert codebase.digest(path) == first
    path.write_text("def f(x):\n    return x - 1\n")
    assert codebase.digest(path) != first
