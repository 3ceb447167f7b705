// The bias as a height: class i stands at (w_i, b_i) in space. Seen from above, the roof over these points, their upper hull, has a corner for each
// class that wins somewhere; a class below the roof wins nowhere, and hangs as far below it as its blocking classes' mean is ahead.

import { Plane, format, svg } from "./stage.js";

const TILT = 0.45; // radians between the view and the ground
const SCALE = 0.68;

/** Triples of classes that are faces of the roof: at the x where they tie, nobody scores more. Layers have at most 16 classes. */
export function roofFaces(points) {
  const faces = [];
  for (let i = 0; i < points.length; i++)
    for (let j = i + 1; j < points.length; j++)
      for (let k = j + 1; k < points.length; k++) {
        const [p, q, r] = [points[i], points[j], points[k]];
        const [a, b, c, d] = [p[0] - q[0], p[1] - q[1], p[0] - r[0], p[1] - r[1]];
        const det = a * d - b * c;
        if (Math.abs(det) < 1e-9) continue;
        const [e, f] = [q[2] - p[2], r[2] - p[2]];
        const x = [(e * d - b * f) / det, (a * f - e * c) / det];
        const tied = p[0] * x[0] + p[1] * x[1] + p[2];
        const size = 1e-9 * (1 + Math.abs(tied));
        if (points.every((w) => w[0] * x[0] + w[1] * x[1] + w[2] <= tied + size)) faces.push([i, j, k]);
      }
  return faces;
}

/** A figure that shows it, turned by `turn` degrees; `show(layer, found, look)` draws, with look = {turn, name, colour}. */
export function liftedFigure(parent) {
  const plane = new Plane(parent, { half: 3, label: "Class vectors lifted by their biases, and the roof over them, seen from the side" });
  plane.root.setAttribute("role", "img");
  plane.root.setAttribute("viewBox", "0 60 420 300"); // wider than high
  plane.frame.replaceChildren();
  const show = (layer, found, { turn, name, colour }) => {
    const angle = (turn * Math.PI) / 180;
    const { points } = layer;
    const heights = points.map((p) => p[2]);
    const ground = Math.min(0, ...heights) - 0.5;
    const middle = (Math.max(...heights) + ground) / 2;
    const rise = Math.min(1.5, 3 / (Math.max(...heights) - ground)); // low roofs are drawn steeper: only the order of heights matters
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const depth = ([x, y]) => x * sin + y * cos;
    const seen = ([x, y, z]) => [SCALE * (x * cos - y * sin), SCALE * (depth([x, y]) * Math.sin(TILT) + rise * (z - middle) * Math.cos(TILT))];
    const faces = roofFaces(points);
    const behindFirst = [...faces].sort((f, g) => sum(g, (i) => depth(points[i])) - sum(f, (i) => depth(points[i])));
    const square = [[-3, -3], [3, -3], [3, 3], [-3, 3]].map(([x, y]) => seen([x, y, ground]));
    plane.draw("ground", [svg("path", { d: `${plane.path(square)}Z`, class: "sg-ground" })]);
    plane.draw("stems", points.map((p, i) => plane.line(seen([p[0], p[1], ground]), seen(p), { class: "sg-stem", style: `--fill: ${colour(i)}` })));
    plane.draw("roof", behindFirst.map((face) => svg("path", { d: `${plane.path(face.map((i) => seen(points[i])))}Z`, class: "sg-face" })));
    const below = points.map((p, i) => [p, found[i].excess]).filter(([, excess]) => excess > 0); // of the blocking classes' mean: there is the roof
    plane.draw("gaps", below.flatMap(([[x, y, z], excess]) => [
      plane.line(seen([x, y, z]), seen([x, y, z + excess]), { class: "sg-gap" }),
      plane.text(seen([x, y, z + excess / 2]), format(excess), { dx: 8, dy: 4, anchor: "start", class: "sg-text sg-small" }),
    ]));
    plane.draw("marks", points.map((p, i) => plane.circle(seen(p), 8, { class: `sg-token${found[i].verdict === "argmaxable" ? "" : " sg-below"}`, style: `--fill: ${colour(i)}` })));
    plane.draw("names", points.map((p, i) => plane.text(seen(p), name(i), { dy: -13 })));
    return below.length;
  };
  return { plane, show };
}

const sum = (list, value) => list.reduce((total, one) => total + value(one), 0);
