"""``softgeom ceiling``: what it prints, writes and refuses; two programs verify it."""

import pytest

import softgeom as sg
from softgeom.certifying import container
from softgeom.results import write_layer
from softgeom.verdict_table import up


@pytest.fixture
def bounded(npz, tmp_path, told):
    """A finished folder of ceilings."""
    told("ceiling", npz, "--out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def check(tool, layer, tmp_path):
    """`check(folder, ...)`: what the exact checker prints about a folder."""
    write_layer(tmp_path / "layer", layer)
    return lambda folder, *more: tool(
        "check_proofs", folder / "ceilings.safetensors", tmp_path / "layer", *more
    )


def test_a_folder_is_verified_by_both_programs(bounded, npz, check, told, refused):
    said = told("verify", bounded, npz)
    assert "40 ceilings of probability re-checked without a solver\n" in said
    assert "not checked: ceilings.csv\n" in said
    path = bounded / "ceilings.safetensors"
    assert "40 ceilings" in told("verify", path, npz)
    assert "proven by: {'odds': 40}" in check(bounded)
    texts, arrays = container.read(path)
    container.write(path, texts, arrays | {"ceilings": arrays["ceilings"] * 0.98})
    refused(r"does not prove the ceiling 0", "verify", bounded, npz)


@pytest.mark.parametrize("features", ["unbounded", "ball"])
def test_other_feature_sets_pass_the_checker_too(features, npz, check, tmp_path, told):
    out, part = tmp_path / "other", tmp_path / "part"
    told("ceiling", npz, "--features", features, "--out", out)
    assert "of a layer of" not in told("verify", out, npz)
    told("ceiling", npz, 3, 5, "--features", features, "--out", part)
    said = told("verify", part, npz)
    assert "2 ceilings" in said
    assert "of a layer of 40 classes" in said
    assert "proven by: {'odds': 12}" in check(out, "--sample", "12")


def test_the_library_says_what_the_command_says(npz, layer, told):
    said = told("ceiling", npz, "t3", 5, "--at", 0.5)
    found = sg.ceilings(layer.W, ["t3", 5], bias=layer.b, tokens=list(layer.tokens))
    assert f"{found.counts(0.5)['reach']} of 2 can reach 50%" in said
    assert sg.floor(layer, [["t3", "t5"], {"t3": 1.0}]).alternatives.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        ([{3: 0.5, 5: 1.5}], "target 0: probabilities .* sum to one; 0.5 .* sum to 2"),
        ([{3: 1.0, "no such": 0.5}], "no class 'no such'"),
        ([[1.5]], "no class 1.5"),
        ([[True]], "no class True"),
        (["t3"], "targets is a list, .*: target 0 is 't3'"),
        ([3, 5], "targets is a list, .*: target 0 is 3"),
        ({3: 0.5, 5: 0.5}, "targets is a list, .*: not {3: 0.5, 5: 0.5}"),
        (None, "targets is a list, .*: not None"),
    ],
    ids=repr,
)
def test_a_target_that_is_none_gets_one_sentence(layer, targets, told):
    with pytest.raises(ValueError, match=told):
        sg.floor(layer, targets)


def test_explain_says_how_probable_a_class_can_become(npz, layer, told):
    found = sg.scan(layer)
    verdicts = found.table.set_index("class")["verdict"]
    winner = verdicts.index[verdicts == "argmaxable"][0]
    assert "probability there is at least" in told("explain", npz, winner)
    # of an unargmaxable class the lower of two bounds, its blocking classes' and its own
    held = verdicts.index[verdicts == "unargmaxable"]
    apart = [(found.ceiling(t), float(sg.ceilings(layer, [t]).ceiling[0]), t) for t in held]
    blocking, own, lost = max(apart, key=lambda bounds: bounds[0] - bounds[1])
    assert own < blocking
    out = told("explain", npz, lost)
    assert f"probability never exceeds {up(100 * own)}% ({up(100 * blocking)}% by" in out


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--at", "0"], "--at"),
        (["--at", "1.5"], "--at"),
        (["nobody"], "no class 'nobody'"),
        (["--features", "norm"], "norm"),
        (["--out", ""], "name a folder for the table and the proofs"),
        (["--out", __file__], "name a folder for the table and the proofs"),
    ],
)
def test_bad_input_gets_one_sentence(wrong, said, npz, refused):
    refused(said, "ceiling", npz, *wrong)
