// The controls, the address of the view, and the start of the page.

const recut = k => {
  state.k = Math.max(1, Math.min(nLeaves, Math.round(k) || 1));
  state.lit = -1;
  state.allCards = false;
  cutAt(state.k);
  colourClusters(kept);
  spreadColours();
  colourTexts();
  drawSlider();
};
// Colours follow those of the clusters as they were found, without merges.
let kept = null;
const keepColours = () => {
  const { merges } = given;
  given.merges = [];
  cutAt(data.tree.given);
  given.merges = merges;
  colourClusters(null);
  kept = keptColours();
};
const drawCut = () => {
  drawMap();
  drawClusters();
  drawPeriods();
  if (nLeaves > 1) drawTree();
};
const setNumber = k => {
  recut(k);
  drawCut();
  drawPair();
  remember();
  speak(`${count(cut.nodes.length, "cluster")}: ${cut.nodes.slice(0, 5).map(node => named(node)).join("; ")}`);
};
const setColour = name => {
  state.colour = columnsOfColour().some(column => column.name === name) ? name : "";
  $("colour").value = state.colour;
  colourTexts();
  drawLegend();
};

// The address: #k=12&a=17&b=40&q=chess&colour=topic&over=date&name=12:Birds&merge=3.7 --------------------------------

let restoring = true;
const remember = () => {
  if (restoring) return;
  const { k, a, b, query, colour, over } = state, parts = new URLSearchParams({ k, a, b });
  if (query) parts.set("q", query);
  if (colour) parts.set("colour", colour);
  if (over) parts.set("over", over);
  rememberNames(parts);
  try {
    history.replaceState(null, "", `#${parts}`);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;  // in the frame of a notebook
  }
};
const restore = () => {
  restoring = true;
  const parts = new URLSearchParams(location.hash.slice(1));
  const chosen = (name, otherwise) => {
    const value = Number(parts.get(name) ?? NaN);
    return Number.isInteger(value) && value >= 0 && value < n ? value : otherwise;
  };
  restoreNames(parts);
  recut(parts.has("k") ? Number(parts.get("k")) : data.tree.given);
  state.over = parts.get("over") || "";
  setColour(parts.get("colour") || "");
  $("query").value = parts.get("q") || "";
  search($("query").value);
  const a = chosen("a", data.first[0]), b = chosen("b", parts.has("a") ? -1 : data.first[1]);
  findNeighbours(a);
  Object.assign(state, { a, b: b < 0 || b === a ? neighbours.list[0] ?? a : b });
  drawCut();
  choosePair(state.a, state.b);
  restoring = false;
};
const copyLink = async () => {
  remember();
  try {
    await navigator.clipboard.writeText(location.href);
    $("copy").textContent = "Link copied";
  } catch {
    $("copy").textContent = "The link is in the address bar";
  }
  setTimeout(() => { $("copy").textContent = "Copy link to this view"; }, 2500);
};

// Start --------------------------------------------------------------------------------------------------------------

const listenToControls = () => {
  $("number").addEventListener("input", event => setNumber(stops[Number(event.target.value)]));
  $("fewer").addEventListener("click", () => setNumber(state.k - 1));
  $("more-clusters").addEventListener("click", () => setNumber(state.k + 1));
  $("given").addEventListener("click", () => setNumber(data.tree.given));
  $("query").addEventListener("input", event => {
    search(event.target.value);
    remember();
  });
  $("colour").addEventListener("change", event => {
    setColour(event.target.value);
    drawMap();
    remember();
  });
  $("over").addEventListener("change", event => {
    state.over = event.target.value;
    drawPeriods();
    remember();
  });
  $("swap").addEventListener("click", () => choosePair(state.b, state.a));
  $("more").addEventListener("click", () => {
    state.allCards = true;
    drawClusters();
  });
  $("download").addEventListener("click", download);
  $("copy").addEventListener("click", copyLink);
  addEventListener("hashchange", restore);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readPalette();
    keepColours();
    setNumber(state.k);
  });
};
const writeHints = () => {
  for (const id of ["measure", "text-b", "heat", "near", "near-title", "swap", "map-hint"]) $(id).hidden = n < 2;
  for (const id of ["slider", "tree-section", "outliers-section"]) $(id).hidden = nLeaves < 2;
  $("copy").hidden = location.protocol === "about:";  // the frame of a notebook has no address
  $("colour-field").hidden = !columnsOfColour().length;
  $("colour").replaceChildren(html("option", { value: "" }, "by cluster"),
    ...columnsOfColour().map(({ name }) => html("option", { value: name },
      name.toLowerCase() === "cluster" ? `by ${name} (column)` : `by ${name}`)));
  $("over").replaceChildren(...data.periods.map(({ name }) => html("option", { value: name }, name)));
  $("precision").textContent = data.checks.length ? howNear() : "";
};
const resize = () => {
  if ($("map").clientWidth === view.room) return;
  measureMap();
  settle();
  drawMap();
  drawPeriods();
  if (nLeaves > 1) drawTree();
};
const start = async () => {
  await unpack();
  await unpackCertainty();
  sumLeaves();
  buildGrid();
  findHomes();
  readPalette();
  writeHints();
  measureMap();
  keepColours();
  restore();
  drawOutliers();
  listenToMap();
  listenToControls();
  new ResizeObserver(resize).observe(document.body);
  mcsg.first = mcsg.steps;
  document.documentElement.dataset.ready = "";
};
start().catch(error => {
  $("failure").hidden = false;
  throw error;
});
