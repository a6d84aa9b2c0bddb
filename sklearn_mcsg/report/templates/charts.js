// The dendrogram, the criterion for each number of clusters, and the start of the page.

const { tree, evidence } = data;
const nLeaves = tree.leaves.length;
const LABEL = 17;

// Nodes of the tree: leaves, then merges, with their size, height, cluster and row -----------------------------------

const nodes = {
  size: tree.leaves.map(leaf => leaf[2]),
  height: [...tree.leaves.map(() => 0), ...tree.mergers.map(merger => merger[2])],
  cluster: [...tree.leaves.map(leaf => leaf[1]), ...tree.mergers.map(merger => merger[3])],
  row: new Array(nLeaves),
};
const order = [];
const arrange = () => {
  tree.mergers.forEach(([a, b]) => nodes.size.push(nodes.size[a] + nodes.size[b]));
  const waiting = [nodes.size.length - 1];
  while (waiting.length) {
    const node = waiting.pop();
    if (node < nLeaves) nodes.row[node] = order.push(node) - 1;
    else waiting.push(...tree.mergers[node - nLeaves].slice(0, 2).sort((a, b) => nodes.size[a] - nodes.size[b]));
  }
  tree.mergers.forEach(([a, b]) => nodes.row.push((nodes.row[a] + nodes.row[b]) / 2));
};

// The tree -----------------------------------------------------------------------------------------------------------

const frame = {};  // size of the drawing, and the positions of heights and rows

const fitted = (words, room) => {
  for (let k = Math.min(3, words.length); k > 0; k--) {
    const text = words.slice(0, k).join(", ");
    if (widthOf(text, "400 12.5px") <= room) return text;
  }
  let text = words[0] || "";
  while (text && widthOf(`${text}…`, "400 12.5px") > room) text = text.slice(0, -1);
  return text && `${text}…`;
};
// Move labels as little as possible so that they do not overlap.
const spread = (places, bottom) => {
  for (let i = 1; i < places.length; i++) places[i] = Math.max(places[i], places[i - 1] + LABEL);
  for (let i = places.length - 1, limit = bottom; i >= 0; i--) limit = (places[i] = Math.min(places[i], limit)) - LABEL;
  return places;
};
const treeLabels = () => {
  const { width, top, bottom, right, yOf } = frame, rows = new Map();
  order.forEach((leaf, row) => {
    const k = nodes.cluster[leaf];
    if (k >= 0) rows.set(k, [...(rows.get(k) || []), row]);
  });
  const spans = [...rows].map(([k, of]) => ({ k, from: yOf(of[0] - .5), to: yOf(of.at(-1) + .5) }));
  const room = Math.floor((bottom - top) / LABEL);
  const largest = spans.filter(span => !alone(span.k)).sort((p, q) => p.k - q.k).slice(0, room);
  const marked = largest.sort((p, q) => p.from - q.from);
  const places = spread(marked.map(({ from, to }) => (from + to) / 2), bottom);
  return [
    ...spans.map(({ k, from, to }) =>
      svg("path", { class: `span ${colour(k)}`, d: `M${right + 6} ${from + .6}V${to - .6}` })),
    ...marked.flatMap(({ k, from, to }, i) => [
      svg("path", { class: "leader", d: `M${right + 10} ${(from + to) / 2}L${right + 20} ${places[i]}` }),
      svg("text", { x: right + 25, y: places[i] + 4.3 }, fitted(clusters[k].words, width - right - 33)),
    ]),
  ];
};

const measureTree = () => {
  const width = $("tree").clientWidth, large = clusters.filter((_, k) => !alone(k)).length;
  const height = Math.min(900, Math.max(180, nLeaves * 1.65, Math.min(nLeaves, 12) * 26, large * (LABEL + 2))) + 52;
  const top = 20, bottom = height - 32, left = 18, right = width - Math.min(210, width * .34);
  const reach = Math.max(1, tree.cut) * 1.03;
  const xOf = h => right - ((right - left) * h) / reach, yOf = row => top + ((row + .5) * (bottom - top)) / nLeaves;
  Object.assign(frame, { width, height, top, bottom, left, right, xOf, yOf });
};
const drawTree = () => {
  measureTree();
  const { width, height, top, bottom, left, right, xOf, yOf } = frame, { row, cluster } = nodes, paths = new Map();
  const x = nodes.height.map(h => xOf(h).toFixed(1)), y = row.map(r => yOf(r).toFixed(1));
  tree.mergers.forEach(([a, b], t) => {
    const k = cluster[nLeaves + t];
    paths.set(k, `${paths.get(k) || ""}M${x[a]} ${y[a]}H${x[nLeaves + t]}V${y[b]}H${x[b]}`);
  });
  const branch = ([k, d]) => svg("path", { class: `branch ${k < 0 ? "trunk" : colour(k)}`, d });
  const cut = xOf(tree.cut), anchor = cut > right - 60 ? "end" : cut < 60 ? "start" : "middle";
  $("tree").replaceChildren(picture(width, height,
    ...[...paths].sort(([j], [k]) => j - k).map(branch),
    svg("path", { class: "branch trunk", d: `M${x.at(-1)} ${y.at(-1)}H${left - 8}` }),
    svg("path", { class: "cut", d: `M${cut} ${top - 10}V${bottom + 6}` }),
    svg("text", { class: "axis", x: cut, y: height - 10, "text-anchor": anchor }, count(clusters.length, "cluster")),
    ...treeLabels()));
};

const mergerAt = (x, y) => tree.mergers.findLastIndex(([a, b, height]) => {
  const ends = [a, b].map(node => frame.yOf(nodes.row[node]));
  return Math.abs(frame.xOf(height) - x) < 5 && y > Math.min(...ends) - 2 && y < Math.max(...ends) + 2;
});
const leafAt = y => {
  const row = Math.floor(((y - frame.top) / (frame.bottom - frame.top)) * nLeaves);
  return tree.leaves[order[Math.min(nLeaves - 1, Math.max(0, row))]];
};
const aboutMerger = t => {
  const [a, b, , k, similarity] = tree.mergers[t];
  const better = similarity > 0 ? "One model is better than two" : "Two models are better than one";
  return [
    html("div", {}, `Merge of ${whole(nodes.size[a])} and ${count(nodes.size[b], "text")}`),
    html("div", { class: "of" }, `${better}: similarity ${similarity < 0 ? "−" : ""}${number(Math.abs(similarity))}`),
    ...(k >= 0 ? [ofCluster(k)] : []),
  ];
};
const aboutLeaf = ([i, k, size]) => {
  if (i >= 0) return about(i);
  return [html("div", {}, count(size, "text")), ...(k >= 0 ? [ofCluster(k)] : [])];
};
const listenToTree = () => {
  const box = $("tree");
  box.addEventListener("pointermove", event => {
    const [x, y] = pointerIn(event, box, frame.width), t = mergerAt(x, y);
    showTip(event.clientX, event.clientY, ...(t >= 0 ? aboutMerger(t) : aboutLeaf(leafAt(y))));
  });
  box.addEventListener("pointerleave", hideTip);
  box.addEventListener("click", event => {
    const [x, y] = pointerIn(event, box, frame.width), [i] = leafAt(y);
    if (mergerAt(x, y) < 0 && i >= 0) choose(i);
  });
};

// Evidence -----------------------------------------------------------------------------------------------------------

const TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];
const curve = {};
const roundDown = most => {
  const unit = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].find(k => k * unit <= most) * unit;
};
const curveMarks = (xOf, yOf, left, right, bottom) => {
  const { numbers, excess, best, chosen } = evidence, low = xOf(best), floor = yOf(0);
  const anchor = low > right - 70 ? "end" : low < left + 50 ? "start" : "middle";
  const marks = [
    svg("circle", { class: "dot", cx: low, cy: floor, r: 5.5 }),
    svg("text", { x: low, y: floor + 21, "text-anchor": anchor },
      best === chosen ? `minimum: ${count(best, "cluster")}` : `minimum: ${whole(best)}`),
  ];
  if (best === chosen) return marks;
  const x = xOf(chosen), y = yOf(excess[numbers.indexOf(chosen)]), before = chosen > best && x > left + 90;
  return [
    ...marks,
    svg("path", { class: "drop", d: `M${x} ${y}V${bottom}` }),
    svg("circle", { class: "dot open", cx: x, cy: y, r: 5.5 }),
    svg("text", { x: before ? x - 11 : x + 11, y: y - 6, "text-anchor": before ? "end" : "start" },
      `chosen: ${whole(chosen)}`),
  ];
};
const drawEvidence = () => {
  const { numbers, excess } = evidence, last = numbers.at(-1), most = Math.max(...excess) || 1;
  const levels = [...new Set([most / 16, most / 4, most].map(roundDown))], name = e => `+${whole(e)}`;
  const width = $("evidence").clientWidth, height = 300, top = 22, bottom = height - 46, floor = bottom - 26;
  const left = 24 + Math.max(...levels.map(e => widthOf(name(e), "400 12px"))), right = width - 22;
  const xOf = k => left + ((right - left) * Math.log(k)) / Math.log(last);
  const yOf = e => floor - (floor - top) * Math.sqrt(e / most);
  const points = numbers.map((k, i) => `${xOf(k).toFixed(1)} ${yOf(excess[i]).toFixed(1)}`);
  const text = (x, y, anchor, words) => svg("text", { class: "axis", x, y, "text-anchor": anchor }, words);
  $("evidence").replaceChildren(picture(width, height,
    ...[0, ...levels].map(e => svg("path", { class: "grid", d: `M${left} ${yOf(e)}H${right}` })),
    ...[0, ...levels].map(e => text(left - 9, yOf(e) + 4, "end", e ? name(e) : "0")),
    ...TICKS.filter(k => k <= last).map(k => text(xOf(k), bottom + 20, "middle", whole(k))),
    text((left + right) / 2, height - 8, "middle", "number of clusters"),
    svg("path", { class: "curve", d: `M${points.join("L")}` }),
    ...curveMarks(xOf, yOf, left, right, bottom)));
  Object.assign(curve, { width, xOf });
};
const listenToEvidence = () => {
  const { numbers, excess } = evidence, box = $("evidence");
  box.addEventListener("pointermove", event => {
    const [x] = pointerIn(event, box, curve.width), far = i => Math.abs(curve.xOf(numbers[i]) - x);
    const i = [...numbers.keys()].reduce((j, k) => (far(k) < far(j) ? k : j));
    showTip(event.clientX, event.clientY, html("div", {}, count(numbers[i], "cluster")), html("div", { class: "of" },
      excess[i] ? `criterion ${number(excess[i])} above its minimum` : "minimum of the criterion"));
  });
  box.addEventListener("pointerleave", hideTip);
};

// Start --------------------------------------------------------------------------------------------------------------

const writeHints = () => {
  const { best, chosen } = evidence, single = tree.leaves.every(leaf => leaf[2] === 1);
  const leaves = single ? "Each leaf on the right is one text" : "Upper part of the tree; a leaf can hold many texts";
  $("tree-hint").textContent = `${leaves}. Branches join where two clusters are merged; the further left, the less `
    + "similar they are. The dashed line is the cut.";
  const found = best === chosen ? "" : ` The minimum is at ${whole(best)}; the chosen number is ${whole(chosen)}.`;
  $("evidence-hint").textContent = "Criterion for each number of clusters, relative to its minimum; lower is "
    + `better.${found} Square-root scale.`;
};
const draw = () => {
  drawMap();
  if (nLeaves > 1) drawTree();
  if (evidence.numbers.length > 1) drawEvidence();
};
const start = async () => {
  await unpack();
  [state.a, state.b] = nearestPair();
  for (const id of ["measure", "text-b", "near", "near-title", "swap", "legend", "map-hint"]) $(id).hidden = n < 2;
  for (const id of ["tree-section", "evidence-section"]) $(id).hidden = nLeaves < 2;
  arrange();
  draw();
  drawPair();
  drawClusters();
  writeHints();
  for (const listen of [listenToMap, listenToTree, listenToEvidence]) listen();
  $("filter").addEventListener("input", filter);
  $("swap").addEventListener("click", () => choosePair(state.b, state.a));
  $("more").addEventListener("click", () => {
    state.allCards = true;
    drawClusters();
  });
  new ResizeObserver(() => { if ($("map").clientWidth !== map.width) draw(); }).observe(document.body);
  document.documentElement.dataset.ready = "";
};
start().catch(error => {
  $("failure").hidden = false;
  throw error;
});
