"""The llama2.c format: files written here field by field, and the real model where it is."""

import numpy as np
import pytest

from softgeom.checkpoints import load_head, read_llama2c, read_llama2c_tokenizer

# dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
HEADER = (8, 6, 2, 2, 1, 11, 5)


def _write(path, header=HEADER, missing=0):
    d, hidden, layers, heads, kv_heads, vocabulary, length = header
    kv = d // heads * kv_heads
    count = abs(vocabulary) * d * (1 if vocabulary > 0 else 2) + d + 2 * length * (d // heads // 2)
    count += layers * (d + d * d + 2 * kv * d + d * d + d + 3 * hidden * d)
    numbers = np.arange(count - missing, dtype="<f4")
    path.write_bytes(np.array(header, "<i4").tobytes() + numbers.tobytes())
    return numbers


@pytest.mark.parametrize("tied", [True, False])
def test_tied_and_untied_models_give_their_weights(tmp_path, tied):
    numbers = _write(tmp_path / "m.bin", (*HEADER[:5], 11 if tied else -11, 5))
    head = load_head(tmp_path / "m.bin")
    expected = numbers[:88] if tied else numbers[-88:]
    np.testing.assert_array_equal(head.layer.W, expected.reshape(11, 8))
    assert head.layer.b is None
    assert head.names["weight"] == ("tok_embeddings" if tied else "output")
    config, weights = read_llama2c(tmp_path / "m.bin")
    # the final gain is followed by the two rotary tables of (5, 2), and by the untied output
    end = len(numbers) - 20 - (0 if tied else 88)
    np.testing.assert_array_equal(head.features.gain, numbers[end - 8 : end])
    assert (config.dim, config.head_dim, config.tied) == (8, 4, tied)
    assert (weights["wk"].shape, weights["w2"].shape) == ((2, 4, 8), (2, 8, 6))


@pytest.mark.parametrize(
    ("change", "missing", "said"),
    [
        ({}, 3, "truncated: 12 bytes are missing"),
        ({}, -2, "8 bytes too long"),
        *(({at: value}, 0, "impossible numbers")
          for at, value in ((0, -8), (0, 2**30), (3, 3), (4, 5), (5, 0))),
    ],
)  # fmt: skip
def test_wrong_sizes_and_impossible_numbers_are_refused(tmp_path, change, missing, said):
    _write(tmp_path / "m.bin", missing=missing)
    header = [change.get(at, value) for at, value in enumerate(HEADER)]
    content = (tmp_path / "m.bin").read_bytes()[28:]
    (tmp_path / "m.bin").write_bytes(np.array(header, "<i4").tobytes() + content)
    with pytest.raises(ValueError, match=said):
        read_llama2c(tmp_path / "m.bin")
    (tmp_path / "m.bin").write_bytes(bytes(11))
    with pytest.raises(ValueError, match="header has 28 bytes, the file has 11"):
        read_llama2c(tmp_path / "m.bin")


def test_the_tokenizer_reads_back_and_others_are_refused(tmp_path):
    tokens, path = [b"<unk>", b" a", "é".encode()], tmp_path / "t.bin"
    content = b"".join(
        np.float32(-i).tobytes() + np.int32(len(t)).tobytes() + t for i, t in enumerate(tokens)
    )
    path.write_bytes(np.int32(5).tobytes() + content)
    read, scores = read_llama2c_tokenizer(path, 3)
    assert read == tokens
    np.testing.assert_array_equal(scores, [0, -1, -2])
    for size, said in ((4, "ends in token 3 of 4"), (2, "holds more than the 2 tokens")):
        with pytest.raises(ValueError, match=said):
            read_llama2c_tokenizer(path, size)


def test_the_real_model(dreams):
    head = load_head(dreams[0])
    assert head.layer.W.shape == (512, 64)
    # garbage read at a wrong offset is astronomically large or zero
    assert 0.01 < np.abs(head.layer.W).mean() < 1.0
    tokens, _ = read_llama2c_tokenizer(dreams[1], 512)
    assert b" the" in tokens
