// Colours and shapes of clusters: the largest clusters get the colours that are easiest to tell apart, and clusters
// that touch on the map get different ones. Colours that are used again come with other shapes.

const COLOURS = 12, SHAPES = 4, GREY = 12, SIDE = 48, ALIKE = .08, EQUAL = 3, KEPT = .5;
const OUTLINES = [
  null,
  [[-.87, -.87], [.87, -.87], [.87, .87], [-.87, .87]],
  [[0, -1.28], [1.28, 0], [0, 1.28], [-1.28, 0]],
  [[0, -1.25], [1.2, .85], [-1.2, .85]],
];
const colourOf = node => `c${nodes.slot[node] % COLOURS}`;
const shapeOf = slot => Math.floor(slot / COLOURS) % SHAPES;
const swatch = (slot, colour = `c${slot % COLOURS}`) => {
  const outline = OUTLINES[shapeOf(slot)];
  const mark = picture(12, 12, outline
    ? svg("polygon", { class: `mark-of ${colour}`, points: outline.map(([u, v]) => [6 + 5 * u, 6 + 5 * v]).join(" ") })
    : svg("circle", { class: `mark-of ${colour}`, cx: 6, cy: 6, r: 5 }));
  mark.setAttribute("class", "swatch");
  mark.setAttribute("aria-hidden", "true");
  return mark;
};

// How alike two colours look, from 0 to 1: by their distance in Oklab, on average over three kinds of eyes ------------

const linear = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16) / 255)
  .map(c => (c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4));
const product = (matrix, vector) => matrix.map(row => row.reduce((sum, value, c) => sum + value * vector[c], 0));
const EYES = [  // normal; without red and without green cones (Machado, Oliveira and Fernandes, 2009)
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  [[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]],
  [[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.01182, .04294, .968881]],
];
const oklab = rgb => {
  const cones = product([[.4122, .5363, .0514], [.2119, .6807, .1074], [.0883, .2817, .63]], rgb);
  return product([[.2105, .7936, -.0041], [1.978, -2.4286, .4506], [.0259, .7828, -.8087]], cones.map(Math.cbrt));
};
const alike = (one, other) => {
  const far = eyes => {
    const [p, q] = [one, other].map(hex => oklab(product(eyes, linear(hex))));
    return Math.hypot(...p.map((value, c) => value - q[c]));
  };
  if (one === other) return EQUAL;
  return EYES.reduce((sum, eyes) => sum + Math.exp(-((far(eyes) / ALIKE) ** 2)) / EYES.length, 0);
};
const palette = [];
const readPalette = () => {
  const style = getComputedStyle(document.documentElement);
  const colours = Array.from({ length: COLOURS + 1 }, (_, c) => style.getPropertyValue(`--c${c}`).trim());
  palette.splice(0, palette.length, ...colours);
  palette.edge = style.getPropertyValue("--card").trim();
  palette.ink = style.getPropertyValue("--ink").trim();
  palette.alike = colours.map(one => colours.map(other => alike(one, other)));
  sprites.clear();
};

// Colours of a cut ---------------------------------------------------------------------------------------------------

// How much clusters touch on the map: texts of one in the same or the next cell of a grid as texts of the other, as a
// share of the smaller cluster.
const touchingClusters = () => {
  const size = cut.nodes.length, cells = Array.from({ length: SIDE * SIDE }, () => new Map());
  const along = value => Math.min(SIDE - 1, Math.floor(value * SIDE));
  const shown = new Float32Array(size), touch = new Float32Array(size * size);
  for (let i = 0; i < n; i++) {
    const cell = cells[along(ys[i]) * SIDE + along(xs[i])], c = cut.clusterOf[i];
    cell.set(c, (cell.get(c) ?? 0) + 1);
    shown[c]++;
  }
  mcsg.steps += n;
  const meet = (here, there) => {
    for (const [p, inP] of here) {
      for (const [q, inQ] of there) {
        touch[p * size + q] += Math.min(inP, inQ);
        touch[q * size + p] += Math.min(inP, inQ);
      }
    }
  };
  cells.forEach((here, at) => {
    const right = at % SIDE < SIDE - 1, below = at + SIDE < cells.length;
    if (!here.size) return;
    meet(here, here);
    if (right) meet(here, cells[at + 1]);
    if (below) meet(here, cells[at + SIDE]);
    if (right && below) meet(here, cells[at + SIDE + 1]);
  });
  return (p, q) => touch[p * size + q] / Math.max(1, Math.min(shown[p], shown[q]));
};
// A colour for each cluster, the largest first: the one least like those of large clusters and of clusters that touch
// it. `kept` are colours that nodes would keep.
const colourClusters = kept => {
  const touch = touchingClusters(), uses = new Array(COLOURS).fill(0), most = sizeOf(cut.nodes[0]), chosen = [];
  cut.nodes.forEach((node, c) => {
    const costs = Array.from({ length: COLOURS }, (_, colour) => chosen.reduce((cost, other, d) =>
      cost + palette.alike[colour][other] * (sizeOf(cut.nodes[d]) / most + 20 * Math.min(1, touch(c, d))),
    colour / 1000 - (kept?.[node] === colour ? KEPT : 0)));
    const colour = costs.indexOf(Math.min(...costs));
    chosen.push(colour);
    partsIn(node).forEach(part => { nodes.slot[part] = colour + COLOURS * (uses[colour] % SHAPES); });
    uses[colour]++;
  });
};
// Colours that nodes have at the number of clusters as found: at each division the larger part keeps the colour.
const keptColours = () => {
  const kept = new Array(nNodes).fill(-1);
  cut.nodes.forEach(node => { kept[node] = nodes.slot[node] % COLOURS; });
  children.forEach(([a, b], t) => {
    if (kept[nLeaves + t] < 0) kept[nLeaves + t] = kept[bySize(a, b) < 0 ? a : b];
  });
  for (let t = nLeaves - 2; t >= 0; t--) {
    const large = [...children[t]].sort(bySize)[0];
    if (kept[large] < 0) kept[large] = kept[nLeaves + t];
  }
  return kept;
};
// Nodes that are no clusters of the cut have the colour of the cluster they belong to, or of their larger part.
const spreadColours = () => {
  const clusters = new Set([...cut.parts.values()].flat());
  for (let t = nLeaves - 2; t >= 0; t--) {
    if (!clusters.has(nLeaves + t)) continue;
    for (const child of children[t]) {
      clusters.add(child);
      nodes.slot[child] = nodes.slot[nLeaves + t];
    }
  }
  children.forEach(([a, b], t) => {
    if (!clusters.has(nLeaves + t)) nodes.slot[nLeaves + t] = nodes.slot[bySize(a, b) < 0 ? a : b];
  });
};
