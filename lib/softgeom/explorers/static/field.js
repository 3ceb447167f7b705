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
  const { n, at, value } = field;
  const polygons = [];
  for (let r = 0; r < n; r++) {
    let start = -1; // first cell of the present run of cells that lie inside as a whole
    for (let c = 0; c <= n; c++) {
      const inside = c < n ? cornersBelow(value, c, r, level) : 0;
      if (inside === 4) {
        if (start < 0) start = c;
        continue;
      }
      if (start >= 0)
        polygons.push([[at(start), at(r)], [at(c), at(r)], [at(c), at(r + 1)], [at(start), at(r + 1)]]);
      start = -1;
      if (inside) polygons.push(cutCell(field, cornersOf(c, r), level));
    }
  }
  return polygons;
}

const cornersOf = (c, r) => [[c, r], [c + 1, r], [c + 1, r + 1], [c, r + 1]];

/** How many of a cell's corners lie below the level; most cells are settled by this. */
function cornersBelow(value, c, r, level) {
  return (
    Number(value(c, r) < level) +
    Number(value(c + 1, r) < level) +
    Number(value(c + 1, r + 1) < level) +
    Number(value(c, r + 1) < level)
  );
}

function cutCell(field, corners, level) {
  return corners.flatMap(([c, r], m) => {
    const [d, s] = corners[(m + 1) % 4];
    const [u, v] = [field.value(c, r) - level, field.value(d, s) - level];
    const own = u < 0 ? [[field.at(c), field.at(r)]] : [];
    return u < 0 !== v < 0 ? [...own, crossing(field, [c, r], [d, s], level)] : own;
  });
}

/** Segments of the curve {f = level}. */
export function contour(field, level) {
  const segments = [];
  for (let r = 0; r < field.n; r++) {
    for (let c = 0; c < field.n; c++) {
      const below = cornersBelow(field.value, c, r, level);
      if (below === 0 || below === 4) continue;
      const corners = cornersOf(c, r);
      const signs = corners.map(([i, j]) => field.value(i, j) < level);
      const ends = corners.flatMap((p, m) =>
        signs[m] !== signs[(m + 1) % 4] ? [crossing(field, p, corners[(m + 1) % 4], level)] : [],
      );
      // Of a saddle the four ends come in the order of the cell's sides: pair them so that they do not cross.
      for (let k = 0; k < ends.length; k += 2) segments.push([ends[k], ends[k + 1]]);
    }
  }
  return segments;
}

/** Where f crosses the level on the side of a cell: the root of the chord, improved by one more chord on the part that holds it. */
function crossing({ f, at, value }, [c, r], [d, s], level) {
  let [ax, ay, u] = [at(c), at(r), value(c, r) - level];
  let [bx, by, v] = [at(d), at(s), value(d, s) - level];
  const share = u / (u - v);
  const [x, y] = [ax + share * (bx - ax), ay + share * (by - ay)];
  const w = f([x, y]) - level;
  if (w < 0 === u < 0) [ax, ay, u] = [x, y, w];
  else [bx, by, v] = [x, y, w];
  const last = u / (u - v);
  return [ax + last * (bx - ax), ay + last * (by - ay)];
}

/** How many points of a rectangle the map sends to the target: each triangle of a grid is sent to a triangle, counted if it holds it. */
export function countPreimages(map, target, [low, high], n = 56) {
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
  let count = 0;
  for (let r = 0; r < n; r++) {
    for (let c = 0; c < n; c++) {
      const k = r * (n + 1) + c;
      const [low, middle, high] = [side(k, k + 1), side(k + 1, k + n + 1), side(k + n + 2, k + n + 1)];
      count += Number(low === middle && side(k + n + 1, k) === low) + Number(side(k + 1, k + n + 2) === high && middle !== high);
    }
  }
  return count;
}
