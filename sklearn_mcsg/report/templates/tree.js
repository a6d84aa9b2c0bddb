// The tree of clusters, its cuts, the slider, and the dendrogram.

const { children, heights, sizes: leafSizes } = data.tree;
const nLeaves = leafSizes.length, nNodes = 2 * nLeaves - 1;
const SHOWN_LEAVES = 60, LABEL = 19, TYPICAL = 3;

// Nodes: sizes, first leaves, parents and colours.
const nodes = {
  size: [...leafSizes], leaf: leafSizes.map((_, i) => i), parent: new Array(nNodes).fill(-1),
  slot: new Array(nNodes).fill(0),
};
children.forEach(([a, b], t) => {
  nodes.size.push(nodes.size[a] + nodes.size[b]);
  nodes.leaf.push(Math.min(nodes.leaf[a], nodes.leaf[b]));
  nodes.parent[a] = nodes.parent[b] = nLeaves + t;
});
const bySize = (p, q) => nodes.size[q] - nodes.size[p] || nodes.leaf[p] - nodes.leaf[q];
// The least number of clusters at which a node is one of them.
const firstNumber = node => (nodes.parent[node] < 0 ? 1 : 2 * nLeaves - nodes.parent[node]);

// Words of a node: name, number of its texts that have the word, share of all texts that have it.
const total = leafSizes.reduce((u, v) => u + v, 0);
const wordsOf = node => data.words.nodes[node].map(([term, here]) => {
  const [name, everywhere] = data.words.terms[term];
  return { name, here: here / nodes.size[node], everywhere: everywhere / total };
});
const wordsNamed = (node, most) => data.words.nodes[node].slice(0, most).map(([term]) => data.words.terms[term][0]);

// The current cut: the nodes of the clusters, the largest first, each with the nodes that were merged with it; the
// cluster of each leaf and of each text; distances to the centres, and how many of their digits are known.
const cut = { nodes: [], parts: new Map(), digits: 4, ofLeaf: [], clusterOf: null, distance: null, typical: [] };
const partsIn = node => cut.parts.get(node) ?? [node];
const sizeOf = node => partsIn(node).reduce((sum, part) => sum + nodes.size[part], 0);
let leafSums;

const sumLeaves = () => {
  leafSums = new Float64Array(nLeaves * width);
  for (let i = 0; i < n; i++) {
    for (let d = 0; d < width; d++) leafSums[leafOf[i] * width + d] += points[i * width + d] / lengths[i];
  }
  mcsg.steps += n;
};
const topsOf = k => {
  const top = Int32Array.from({ length: nNodes }, (_, node) => node);
  for (let t = nLeaves - k - 1; t >= 0; t--) children[t].forEach(node => { top[node] = top[nLeaves + t]; });
  return top.subarray(0, nLeaves);
};
const cutAt = k => {
  const top = topsOf(k), clusters = merged([...new Set(top)]);
  const rank = new Map(clusters.flatMap((parts, c) => parts.map(node => [node, c])));
  const ofLeaf = Array.from(top, node => rank.get(node)), centres = new Float64Array(clusters.length * width);
  ofLeaf.forEach((c, leaf) => {
    for (let d = 0; d < width; d++) centres[c * width + d] += leafSums[leaf * width + d];
  });
  for (let c = 0; c < clusters.length; c++) {
    const length = Math.hypot(...centres.subarray(c * width, (c + 1) * width)) || 1;
    for (let d = 0; d < width; d++) centres[c * width + d] /= length;
  }
  const asFound = k === data.tree.given && clusters.length === k;  // then Python has computed the distances
  const clusterOf = new Uint32Array(n), distance = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    const c = ofLeaf[leafOf[i]];
    let sum = 0;
    for (let d = 0; d < width; d++) sum += points[i * width + d] * centres[c * width + d];
    clusterOf[i] = c;
    distance[i] = asFound ? exactDistances[i] : 1 - sum / lengths[i];
  }
  mcsg.steps += n;
  Object.assign(cut, {
    nodes: clusters.map(([largest]) => largest), parts: new Map(clusters.map(parts => [parts[0], parts])),
    digits: asFound || data.points.bytes > 1 ? 4 : 2, ofLeaf, clusterOf, distance,
    typical: typicalTexts(clusters.length, clusterOf, distance),
  });
};
// The few different texts of each cluster that are nearest to its centre.
const typicalTexts = (k, clusterOf, distance) => {
  const best = Array.from({ length: k }, () => []);
  for (let i = 0; i < n; i++) {
    const list = best[clusterOf[i]];
    if (list.length === TYPICAL && distance[i] >= distance[list[TYPICAL - 1]]) continue;
    if (list.some(j => texts[j] === texts[i])) continue;
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

const ofText = (i, further = []) => {
  const node = cut.nodes[cut.clusterOf[i]], cluster = html("span", {}, swatch(nodes.slot[node]), named(node));
  return html("div", { class: "of" }, cluster, ...further, ...valuesOf(i));
};

// The slider ---------------------------------------------------------------------------------------------------------

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

// The BIC is only mentioned where it supports the number on show.
const drawSlider = () => {
  const { given, best } = data.tree, { k } = state, input = $("number"), shown = cut.nodes.length;
  input.max = stops.length - 1;
  input.value = Math.round(placeOfNumber(k));
  input.setAttribute("aria-valuetext", count(k, "cluster"));
  for (const id of ["number-shown", "facts-number"]) $(id).textContent = count(shown, "cluster");
  $("given").textContent = `${data.numberFound ? "as found" : "as given"}: ${whole(given)}`;
  $("given").ariaCurrent = k === given ? "true" : null;
  const supported = k === best && k > 1 ? "The BIC supports this number: it weighs how closely texts lie around the"
    + " centres of their clusters against the number of clusters, and is best here. " : "";
  const merges = shown < k ? `${count(k, "cluster")} of the tree, some of which are merged. ` : "";
  const end = k === nLeaves && k < total ? "The slider ends here: for more, cluster the texts again." : "";
  $("slider-hint").textContent = merges + supported + end;
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
    else waiting.push(...[...children[node - nLeaves]].sort((a, b) => bySize(b, a)));
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
