// One formula a line, JSON of [TeX, whether it stands apart]: MathML, by the MathJax in the folder that is named.
const { createInterface } = require("node:readline");
require(`${process.argv[2]}/es5/node-main.js`)
  .init({ loader: { load: ["input/tex"] } })
  .then((MathJax) => {
    createInterface({ input: process.stdin }).on("line", (line) => {
      const [tex, display] = JSON.parse(line);
      console.log(JSON.stringify(MathJax.tex2mml(tex, { display }).replace(/\n\s*/g, "").replace(/ data-mjx-[\w-]+="[^"]*"/g, "")));
    });
  });
