"""What a file or folder is that no reader takes, by its content, and what to do with it."""

from __future__ import annotations

import zipfile
from pathlib import Path

_SAVE = "save the matrix of its last layer with numpy.savez(path, W=W, b=b)"
_CONVERT = f"convert it to ONNX or TFLite, or {_SAVE}"
_UNPACK = "unpack it first"
_RENAME = "give it the ending"
_SAVED_MODEL = f"TensorFlow's SavedModel: {_CONVERT}"
_GONE = f"which is no longer read: {_SAVE}"
_CORE_ML = f"a Core ML model: {_CONVERT}"

# how a file begins: what it is
_BEGINNINGS = {
    b"\x89HDF": f"an HDF5 file, as Keras writes them: {_SAVE}",
    b"\xfd7zXZ": f"compressed (xz): {_UNPACK}",
    b"\x1f\x8b": f"compressed (gzip): {_UNPACK}",
    b"BZh": f"compressed (bzip2): {_UNPACK}",
    b"\x28\xb5\x2f\xfd": f"compressed (Zstandard): {_UNPACK}",
    b"version https://git-lfs": "a pointer of Git LFS to a file: fetch that one (git lfs pull)",
    b"<!DOCTYPE": "a web page, not a model: fetch the file itself",
    b"<html": "a web page, not a model: fetch the file itself",
    b"\xba\x16O/": f"a fastText model, {_GONE}",
    b"\0B<TransitionModel>": f"a Kaldi model, {_GONE}",
    b"\0B<Nnet3>": f"a Kaldi model, {_GONE}",
    b"GGUF": f"a GGUF file: {_RENAME} .gguf",
    b"\x80": f"a pickle: {_RENAME} .pt if PyTorch wrote it, else .pkl",
}
# how a member of a ZIP archive ends: what the archive is; the first that fits
_MEMBERS = {
    "/archive_format": "a program of torch.export: save state_dict() of the module it was made of",
    "/constants.pkl": "a TorchScript program: save model.state_dict() of the module it was made of",
    "model.weights.h5": f"a Keras archive: {_SAVE}",
    "/data.pkl": f"a file of PyTorch: {_RENAME} .pt",
    ".npy": f"an archive of NumPy arrays: {_RENAME} .npz",
}


def what_it_is(path: Path) -> str | None:
    """The rest of a sentence that begins with the path and "is"; None for what is not known."""
    if is_result(path):
        return "what a scan left: give the model that was scanned"
    if path.name == "saved_model.pb" or (path / "saved_model.pb").is_file():
        return _SAVED_MODEL
    if any(part.endswith((".mlpackage", ".mlmodelc")) for part in path.parts[-6:]):
        return _CORE_ML
    if not path.is_file():
        return None
    if path.suffix == ".traineddata":
        return f"a Tesseract model, {_GONE}"
    with path.open("rb") as file:
        start = file.read(64)
    if start[4:8] == b"TFL3":
        return f"a TFLite file: {_RENAME} .tflite"
    if start.startswith(b"PK"):
        return _archive(path)
    # a version, the length of a text, and the text: the name of the model's class
    if start[4:].find(b"Spec\0") > 0:
        return f"a CTranslate2 model, {_GONE}"
    if path.suffix == ".json" and b"weightsManifest" in path.read_bytes():
        return f"a TensorFlow.js model, {_GONE}"
    return next((said for begun, said in _BEGINNINGS.items() if start.startswith(begun)), None)


def is_result(folder: Path) -> bool:
    """Whether a scan wrote into this folder."""
    return (folder / "evidence.safetensors").is_file()


def _archive(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, UnicodeDecodeError):
        return None
    fitting = (said for end, said in _MEMBERS.items() if any(name.endswith(end) for name in names))
    return next(fitting, f"an archive (ZIP): {_UNPACK}")
