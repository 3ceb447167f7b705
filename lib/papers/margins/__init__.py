"""Where attention's change of variables is singular, and the log-barrier that keeps a model away
from there.

Closed forms (``jacobian``, ``spectral``, ``scalar``), the generative model and its token laws
(``prior``, ``process``) need NumPy and SciPy only.  The log-barrier and what trains with it import
PyTorch when they are first asked for.  ``jacobian`` and the log-barrier take arrays of both.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from papers.extras import naming_the_extra
from papers.margins.jacobian import (
    appendix_a_blocks,
    attend,
    attention_jacobian_blocks,
    residual_map,
)
from papers.margins.prior import log_density, sample_sequence
from papers.margins.spectral import eigenvalue_margin, singular_value_margin, spectral_radius_margin

# what editors and type checkers see; looked up below when first used
if TYPE_CHECKING:
    from papers.margins.barrier import log_barrier as log_barrier
    from papers.margins.barrier import signed_log_barrier as signed_log_barrier
    from papers.margins.barrier_estimates import series_log_barrier as series_log_barrier
    from papers.margins.barrier_estimates import stochastic_log_barrier as stochastic_log_barrier
    from papers.margins.embedding_prior import EmbeddingPrior as EmbeddingPrior
    from papers.margins.embedding_prior import PriorConfig as PriorConfig

# name -> module, for names whose module imports torch
_TORCH_NAMES = {
    "EmbeddingPrior": "embedding_prior",
    "PriorConfig": "embedding_prior",
    "log_barrier": "barrier",
    "series_log_barrier": "barrier_estimates",
    "signed_log_barrier": "barrier",
    "stochastic_log_barrier": "barrier_estimates",
}

__all__ = [
    "appendix_a_blocks",
    "attend",
    "attention_jacobian_blocks",
    "eigenvalue_margin",
    "log_density",
    "residual_map",
    "sample_sequence",
    "singular_value_margin",
    "spectral_radius_margin",
    *_TORCH_NAMES,
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _TORCH_NAMES:
            with naming_the_extra():
                return getattr(import_module(f"{__name__}.{_TORCH_NAMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
