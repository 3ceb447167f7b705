"""Files that are dropped on the page that scans, whose worker answers in node."""

import base64

import pytest

from softgeom.web.scan_page import table

OPEN = """
const file = new File([Uint8Array.from(atob(argument.bytes), (c) => c.charCodeAt(0))], argument.name);
try {
  const { choices, chosen, said, behind } = await m.answers.open({ file, table: argument.table });
  const layer = choices.find(({ name }) => name === chosen);
  if (!layer || layer.open) return { said: `${said} ${layer?.open}`, offered: choices.length };
  const choice = { weight: chosen, bias: layer.bias, transposed: layer.transposed };
  const { lost } = await m.answers.scan({ choice, set: { kind: "ball", radius: 1 }, labels: null, file: file.name });
  const bytes = Array.from((await m.answers.layerFile()).bytes, (byte) => String.fromCharCode(byte));
  const ceilings = lost.filter(({ ceiling }) => ceiling !== null).length;
  return { ...layer, said, behind, ceilings, lost: lost.length, layer: btoa(bytes.join("")) };
} catch (error) {
  return { said: error.message };
}
"""  # noqa: E501


@pytest.fixture
def opened(javascript):
    """`opened(content, name)`: what the page says of a file, and of its layer where that is
    certain.
    """

    def opened_(content: bytes, name: str) -> dict:
        coded = base64.b64encode(content).decode()
        argument = {"bytes": coded, "name": name, "table": table()}
        return javascript("scan_worker", OPEN, argument)

    return opened_
