// A function on a square window of the plane: where it lies below a level, and the curve where it equals one (marching squares).

/** Sample f on an (n + 1) x (n + 1) grid of the square |x_1|, |x_2| <= half; rows run upwards. */
export function sampleField(f, half, n = 72) {
  const at = (k) => half * ((2 * k) / n - 1);
  const values = new Float64Array((n + 1) * (n + 1));
  const point = [0, 0]; // one for all: a drag asks for ten thousand
  for (let r = 0; r <= n; r++) {
    point[1] = at(r);
    for (let c = 0; c <= n; c++) {
      point[0] = at(c);
      values[r * (n + 1) + c] = f(point);
    }
  }
  return { f, n, at, value: (c, r) => values[r * (n + 1) + c] };
}

/** Convex polygons that tile {f < level}: clipped cells at its edge, whole runs of cells inside. */
export function regionBelow(field, level) {
  const { n, at } = field;
  const polygons = [];
  for (let r = 0; r < n; r++) {
    let start = -1; // first cell of the present run of cells that lie inside as a whole
    let left = endsBelow(field, 0, r, level);
    for (let c = 0; c <= n; c++) {
      const right = c < n ? endsBelow(field, c + 1, r, level) : 0;
      const inside = c < n ? left + right : 0;
      left = right;
      if (inside === 4) {
        if (start < 0) start = c;
        continue;
      }
      if (start >= 0) polygons.push([[at(start), at(r)], [at(c), at(r)], [at(c), at(r + 1)], [at(start), at(r + 1)]]);
      start = -1;
      if (inside) polygons.push(cutCell(field, c, r, level));
    }
  }
  return polygons;
}

/** Segments of the curve {f = level}. */
export function contour(field, level) {
  const { n } = field;
  const segments = [];
  for (let r = 0; r < n; r++) {
    let left = endsBelow(field, 0, r, level);
    for (let c = 0; c < n; c++) {
      const right = endsBelow(field, c + 1, r, level);
      const below = left + right;
      left = right;
      if (below === 0 || below === 4) continue;
      const ends = [];
      for (let m = 0; m < 4; m++) {
        const end = crossing(field, c, r, m, level);
        if (end) ends.push(end);
      }
      // Of a saddle the four ends come in the order of the cell's sides: pair them so that they do not cross.
      for (let k = 0; k < ends.length; k += 2) segments.push([ends[k], ends[k + 1]]);
    }
  }
  return segments;
}

/** How many of the two ends of a cell's upright side lie below the level; most cells are settled by their four. */
const endsBelow = ({ value }, c, r, level) => Number(value(c, r) < level) + Number(value(c, r + 1) < level);

// The corners of a cell, counter-clockwise from the lower left: corner m stands at (c + RIGHT[m], r + UP[m]), side m goes from it to the next.
const RIGHT = [0, 1, 1, 0, 0];
const UP = [0, 0, 1, 1, 0];

function cutCell(field, c, r, level) {
  const polygon = [];
  for (let m = 0; m < 4; m++) {
    const [i, j] = [c + RIGHT[m], r + UP[m]];
    if (field.value(i, j) < level) polygon.push([field.at(i), field.at(j)]);
    const end = crossing(field, c, r, m, level);
    if (end) polygon.push(end);
  }
  return polygon;
}

/** Where f crosses the level on side m of a cell, or null: the root of the chord, improved by one more chord on the part that holds it. */
function crossing({ f, at, value }, c, r, m, level) {
  let u = value(c + RIGHT[m], r + UP[m]) - level;
  let v = value(c + RIGHT[m + 1], r + UP[m + 1]) - level;
  if (u < 0 === v < 0) return null;
  let [ax, ay] = [at(c + RIGHT[m]), at(r + UP[m])];
  let [bx, by] = [at(c + RIGHT[m + 1]), at(r + UP[m + 1])];
  const share = u / (u - v);
  const middle = [ax + share * (bx - ax), ay + share * (by - ay)];
  const w = f(middle) - level;
  if (w < 0 === u < 0) {
    [ax, ay] = middle;
    u = w;
  } else {
    [bx, by] = middle;
    v = w;
  }
  const last = u / (u - v);
  return [ax + last * (bx - ax), ay + last * (by - ay)];
}

/** How many points of a rectangle the map sends to the target: each triangle of a grid is sent to a triangle, counted if it holds it. */
export function countPreimages(map, target, [low, high], n) {
  const at = (k, axis) => low[axis] + ((high[axis] - low[axis]) * k) / n;
  const [u, v] = [0, 1].map(() => new Float64Array((n + 1) * (n + 1))); // images, seen from the target
  const point = [0, 0];
  for (let r = 0, k = 0; r <= n; r++) {
    for (let c = 0; c <= n; c++, k++) {
      point[0] = at(c, 0);
      point[1] = at(r, 1);
      const image = map(point);
      u[k] = image[0] - target[0];
      v[k] = image[1] - target[1];
    }
  }
  const side = (a, b) => u[a] * v[b] - v[a] * u[b] > 0; // of the target, from a to b
  const beside = (w, k) => {
    const [p, q, r, s] = [w[k], w[k + 1], w[k + n + 1], w[k + n + 2]];
    return (p > 0 && q > 0 && r > 0 && s > 0) || (p < 0 && q < 0 && r < 0 && s < 0);
  };
  let count = 0;
  for (let r = 0; r < n; r++) {
    for (let c = 0; c < n; c++) {
      const k = r * (n + 1) + c;
      if (beside(u, k) || beside(v, k)) continue; // most cells
      const [low, middle, high] = [side(k, k + 1), side(k + 1, k + n + 1), side(k + n + 2, k + n + 1)];
      count += Number(low === middle && side(k + n + 1, k) === low) + Number(side(k + 1, k + n + 2) === high && middle !== high);
    }
  }
  return count;
}
