"""The geometry of softmax: what it, its hard limit and the matrices around it can and cannot express.

Four chapters, one package each: `bottleneck`, `margins`, `circuits`, `hardmax`. They stand on shared leaves
(`layer`, `corpora`, `checkpoints`, `record`, `style`, `language_model`) and never import each other.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("softgeom")
except PackageNotFoundError:  # imported from a source folder that was never installed
    __version__ = "0+unknown"
