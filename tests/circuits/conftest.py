"""Four models for every identity: two random ones, and two real ones where they are."""

from collections.abc import Callable

import pytest
import torch

from compendium.models.language_models import load_trained
from papers.circuits import Anatomy, dissect
from papers.language_model import GPT, GPTConfig, Llama, LlamaConfig
from papers.language_model.llama_files import load_llama2c


def _shaken(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Float64, with gains and biases away from one and zero: identities need no such values."""
    generator = torch.Generator().manual_seed(seed)
    model = model.double().requires_grad_(False)
    for parameter in model.parameters():
        parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


SIZES = {"d_vocab": 31, "d_model": 24, "n_layers": 2, "d_mlp": 40, "n_ctx": 16}


def random_gpt() -> torch.nn.Module:
    return _shaken(GPT(GPTConfig(n_heads=3, **SIZES)), seed=1)


def random_llama() -> torch.nn.Module:
    """Four query heads on two key heads, an unembedding of its own."""
    sizes = LlamaConfig(n_heads=4, n_kv_heads=2, tie_embeddings=False, **SIZES)
    return _shaken(Llama(sizes), seed=2)


def trained_gpt() -> torch.nn.Module:
    try:
        return load_trained("gpt", "default").model.double().requires_grad_(False)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=["random GPT", "random Llama", "real Llama", "trained GPT"])
def model(request: pytest.FixtureRequest) -> torch.nn.Module:
    make: dict[str, Callable[[], torch.nn.Module]] = {
        "random GPT": random_gpt,
        "random Llama": random_llama,
        "real Llama": lambda: load_llama2c(*request.getfixturevalue("dreams")),
        "trained GPT": trained_gpt,
    }
    return make[request.param]()


@pytest.fixture(scope="module")
def anatomy(model: torch.nn.Module) -> Anatomy:
    return dissect(model, type(model).__name__)


@pytest.fixture(scope="module")
def tokens(anatomy: Anatomy) -> torch.Tensor:
    """Two sequences that fill the shorter contexts, (2, 16)."""
    return torch.randint(0, len(anatomy.W_E), (2, 16), generator=torch.Generator().manual_seed(3))
