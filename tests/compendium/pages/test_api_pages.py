import json
import subprocess
import sys

from compendium.pages import api_pages

_WITHOUT_PYTORCH = """
import json, sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
from compendium.pages import api_pages
assert "torch" in api_pages.absent()
print(json.dumps(api_pages.pages()))
"""


def test_the_reference_is_the_same_without_pytorch():
    done = subprocess.run([sys.executable, "-c", _WITHOUT_PYTORCH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == api_pages.pages()


def test_names_stand_under_the_module_that_defines_them():
    page = api_pages.pages()["margins"]
    assert "softgeom.margins.barrier\n   :members: log_barrier, signed_log_barrier" in page
