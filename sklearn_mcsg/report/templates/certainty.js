// How sure clusters are: the stability of each, and the second-best cluster of each text. Both are known for the clusters
// as they were found, and are not shown at other numbers of clusters or with merged clusters.

const certainty = { second: null, margins: null };
const unpackCertainty = async () => {
  const { second, margins } = data.certainty;
  if (!second) return;
  certainty.second = new Uint32Array(await inflate(second));
  certainty.margins = Float32Array.from(new Int16Array(await inflate(margins)), value => value / 10000);
};
const areAsFound = () => state.k === data.tree.given && cut.nodes.length === state.k;

const STABILITY = "The share of pairs of texts that are together again when halves of the texts are clustered: 1 means"
  + " always, and near 0 that the cluster depends on chance.";
const stabilityOf = node => {
  const value = areAsFound() ? data.certainty.stability[node] : undefined;
  if (value === undefined) return [];
  return [html("p", { class: "stability", title: STABILITY }, `stability ${decimal(value)}`)];
};

// The other cluster whose centre is nearest to a text, and how much farther it is than that of its own.
const secondOf = i => {
  if (!certainty.second || !areAsFound()) return [];
  const node = certainty.second[i], margin = certainty.margins[i];
  return [html("span", { class: "second", "data-second": node, "data-margin": margin.toFixed(4),
    title: "How much farther the centre of that cluster is than the centre of the text's own; negative if it is nearer" },
  `next nearest: ${named(node)} (margin ${decimal(margin)})`)];
};
const drawCertainty = () => {
  const shown = areAsFound() && Object.keys(data.certainty.stability).length > 0;
  $("stability-hint").textContent = shown ? ` Stability: ${STABILITY[0].toLowerCase()}${STABILITY.slice(1)}` : "";
};
