// The tree of clusters, its cuts, the slider with the evidence above it, and the dendrogram.

const { children, heights, excess, sizes: leafSizes } = data.tree;
const nLeaves = leafSizes.length, nNodes = 2 * nLeaves - 1;
const COLOURS = 12, SHAPES = 4, GREY = 12, SHOWN_LEAVES = 60, LABEL = 19, TYPICAL = 3;

// Nodes: sizes, first leaves, and colours. At a split the larger part keeps the colour, so that it is the same at
// every cut, and the cut into k clusters has the colours 0 to k - 1.
const nodes = { size: [...leafSizes], leaf: leafSizes.map((_, i) => i), slot: new Array(nNodes).fill(0) };
children.forEach(([a, b]) => {
  nodes.size.push(nodes.size[a] + nodes.size[b]);
  nodes.leaf.push(Math.min(nodes.leaf[a], nodes.leaf[b]));
});
for (let t = nLeaves - 2; t >= 0; t--) {
  const bySize = (a, b) => nodes.size[b] - nodes.size[a] || nodes.leaf[a] - nodes.leaf[b];
  const [large, small] = [...children[t]].sort(bySize);
  nodes.slot[large] = nodes.slot[nLeaves + t];
  nodes.slot[small] = nLeaves - 1 - t;
}

// Words of a node: name, number of its texts that have the word, share of all texts that have it.
const total = leafSizes.reduce((u, v) => u + v, 0);
const wordsOf = node => data.words.nodes[node].map(([term, here]) => {
  const [name, everywhere] = data.words.terms[term];
  return { name, here: here / nodes.size[node], everywhere: everywhere / total };
});
const named = (node, most = 3) =>
  data.words.nodes[node].slice(0, most).map(([term]) => data.words.terms[term][0]).join(", ")
  || "no words";

// The current cut: nodes of the clusters, the largest first; the cluster of each text; distances to the centres.
const cut = { nodes: [], clusterOf: null, distance: null, typical: [] };
let leafSums;

const sumLeaves = () => {
  leafSums = new Float64Array(nLeaves * width);
  for (let i = 0; i < n; i++) {
    for (let d = 0; d < width; d++) leafSums[leafOf[i] * width + d] += points[i * width + d];
  }
  mcsg.steps += n;
};
const topsOf = k => {
  const top = Int32Array.from({ length: nNodes }, (_, node) => node);
  for (let t = nLeaves - k - 1; t >= 0; t--) children[t].forEach(node => { top[node] = top[nLeaves + t]; });
  return top.subarray(0, nLeaves);
};
const cutAt = k => {
  const top = topsOf(k), found = [...new Set(top)];
  found.sort((p, q) => nodes.size[q] - nodes.size[p] || nodes.leaf[p] - nodes.leaf[q]);
  const rank = new Map(found.map((node, r) => [node, r])), ofLeaf = Array.from(top, node => rank.get(node));
  const centres = new Float64Array(k * width);
  ofLeaf.forEach((c, leaf) => {
    for (let d = 0; d < width; d++) centres[c * width + d] += leafSums[leaf * width + d];
  });
  for (let c = 0; c < k; c++) {
    const length = Math.hypot(...centres.subarray(c * width, (c + 1) * width)) || 1;
    for (let d = 0; d < width; d++) centres[c * width + d] /= length;
  }
  const clusterOf = new Uint32Array(n), distance = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    const c = ofLeaf[leafOf[i]];
    let sum = 0;
    for (let d = 0; d < width; d++) sum += points[i * width + d] * centres[c * width + d];
    clusterOf[i] = c;
    distance[i] = 1 - sum;
  }
  mcsg.steps += n;
  Object.assign(cut, { nodes: found, clusterOf, distance, typical: typicalTexts(k, clusterOf, distance) });
};
// The few texts of each cluster that are nearest to its centre.
const typicalTexts = (k, clusterOf, distance) => {
  const best = Array.from({ length: k }, () => []);
  for (let i = 0; i < n; i++) {
    const list = best[clusterOf[i]];
    if (list.length === TYPICAL && distance[i] >= distance[list[TYPICAL - 1]]) continue;
    list.push(i);
    list.sort((p, q) => distance[p] - distance[q] || p - q);
    if (list.length > TYPICAL) list.pop();
  }
  mcsg.steps += n;
  return best;
};
const membersOf = c => {
  const members = [];
  for (let i = 0; i < n; i++) if (cut.clusterOf[i] === c) members.push(i);
  mcsg.steps += n;
  return members.sort((p, q) => cut.distance[p] - cut.distance[q]);
};

// Colours and shapes: twelve colours, then other shapes --------------------------------------------------------------

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
const ofText = i => {
  const node = cut.nodes[cut.clusterOf[i]];
  return html("div", { class: "of" }, html("span", {}, swatch(nodes.slot[node]), named(node)), ...valuesOf(i));
};

// The slider and, above it on the same axis, the evidence ------------------------------------------------------------

// Numbers of clusters at which the slider stops: every one up to fifty, then 3 % more each time.
const stops = [1];
while (stops.at(-1) < nLeaves) {
  stops.push(Math.min(nLeaves, Math.max(stops.at(-1) + 1, Math.round(1.03 * stops.at(-1)))));
}
// The place of any number of clusters among the stops, which need not be whole.
const placeOfNumber = k => {
  const next = stops.findIndex(stop => stop >= k);
  return next && next - (stops[next] - k) / (stops[next] - stops[next - 1]);
};

const drawEvidence = () => {
  const box = $("evidence"), room = box.clientWidth, height = 54;
  if (nLeaves < 3 || !room) return box.replaceChildren();
  const most = Math.max(...excess) || 1;
  const x = k => 9 + ((room - 18) * placeOfNumber(k)) / (stops.length - 1);
  const y = e => height - 6 - (height - 14) * Math.sqrt(e / most);
  const at = k => `${x(k).toFixed(1)} ${y(excess[k - 1]).toFixed(1)}`;
  const { best } = data.tree, { k } = state;
  box.replaceChildren(picture(room, height,
    svg("path", { class: "curve", d: `M${excess.map((_, i) => at(i + 1)).join("L")}` }),
    svg("circle", { class: "dot open", cx: x(best), cy: y(excess[best - 1]), r: 4 }),
    svg("path", { class: "drop", d: `M${at(k)}V${height}` }),
    svg("circle", { class: "dot", cx: x(k), cy: y(excess[k - 1]), r: 5 })));
};
const drawSlider = () => {
  const { given, best } = data.tree, { k } = state, input = $("number"), above = excess[k - 1] - excess[best - 1];
  input.max = stops.length - 1;
  input.value = Math.round(placeOfNumber(k));
  input.setAttribute("aria-valuetext", count(k, "cluster"));
  for (const id of ["number-shown", "facts-number"]) $(id).textContent = count(k, "cluster");
  $("given").textContent = `clustering: ${whole(given)}`;
  $("best").textContent = `lowest BIC: ${whole(best)}`;
  $("best").hidden = nLeaves < 3 || best === 1;
  $("evidence-hint").hidden = nLeaves < 3;
  $("given").toggleAttribute("aria-current", k === given);
  $("best").toggleAttribute("aria-current", k === best);
  const difference = `BIC ${whole(Math.abs(Math.round(above)))} ${above < 0 ? "below" : "above"} that of `;
  const undecided = "The BIC is lowest without clusters: it does not choose a number here.";
  const evidence = best === 1 ? undecided : k === best ? "The BIC is lowest here." :
    `${difference}${count(best, "cluster")}.`;
  const end = " The slider ends here: for more, cluster the texts again.";
  $("evidence-hint").textContent = evidence + (k === nLeaves && k < total ? end : "");
  drawEvidence();
};

// The dendrogram of the clusters of the current cut -------------------------------------------------------------------

const fitted = (text, room) => {
  if (widthOf(text, "400 13px") <= room) return text;
  let short = text;
  while (short && widthOf(`${short}…`, "400 13px") > room) short = short.slice(0, -1);
  return short && `${short}…`;
};
const drawTree = () => {
  const k = Math.min(state.k, SHOWN_LEAVES), shown = new Set(topsOf(k)), rows = new Map(), waiting = [nNodes - 1];
  while (waiting.length) {
    const node = waiting.pop();
    if (shown.has(node)) rows.set(node, rows.size);
    else waiting.push(...[...children[node - nLeaves]].sort((a, b) => nodes.size[a] - nodes.size[b]));
  }
  const room = $("tree").clientWidth, height = k * LABEL + 24, right = room * (room < 500 ? .4 : .5), top = 12;
  const tallest = heights[nLeaves - 2] || 1, branches = [], at = new Map();
  for (const [node, row] of rows) at.set(node, [right, top + (row + .5) * LABEL]);
  for (let node = 2 * nLeaves - k; node < nNodes; node++) {
    const [a, b] = children[node - nLeaves].map(child => at.get(child));
    const x = right - 8 - ((right - 34) * heights[node - nLeaves]) / tallest;
    at.set(node, [x, (a[1] + b[1]) / 2]);
    branches.push(svg("path", { class: "branch", d: `M${a[0]} ${a[1]}H${x}V${b[1]}H${b[0]}` }));
  }
  const leaves = [...rows].map(([node, row]) => {
    const y = top + (row + .5) * LABEL, size = whole(nodes.size[node]), mark = swatch(nodes.slot[node]).firstChild;
    mark.setAttribute("transform", `translate(${right + 4} ${y - 6})`);
    const label = fitted(named(node, 4), room - right - 36 - widthOf(size, "400 13px"));
    return svg("g", {}, mark, svg("text", { x: right + 22, y: y + 4.4 }, label),
      svg("text", { class: "axis", x: room - 10, y: y + 4.4, "text-anchor": "end" }, size));
  });
  $("tree").replaceChildren(picture(room, height, ...branches, ...leaves));
  $("tree-hint").textContent = "Clusters join where they are merged; the further left, the less similar they are."
    + (k < state.k ? ` The upper part of the tree, down to ${k} clusters, is shown.` : "");
};
