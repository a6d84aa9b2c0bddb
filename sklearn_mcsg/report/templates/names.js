// Names that readers give to clusters, and clusters that they merge. Both belong to nodes of the tree, and are seen at
// the numbers of clusters at which these nodes are clusters. The address of the page holds them.

const given = { names: new Map(), merges: [] };

// The name of a cluster: a given one, or its words, or the first words of the clusters that were merged.
const named = (node, most = 3) => {
  const parts = partsIn(node), own = given.names.get(node);
  if (own) return own;
  const words = (part, some) => wordsNamed(part, some).join(", ") || "no words";
  return parts.length > 1 ? parts.map(part => given.names.get(part) ?? words(part, 1)).join(" + ") : words(node, most);
};

// The nodes of a cut as clusters, the largest first: lists of nodes, of which the largest comes first.
const merged = found => {
  const free = new Set(found), clusters = [];
  for (const merge of given.merges) {
    const parts = merge.filter(node => free.has(node)).sort(bySize);
    if (parts.length < 2) continue;
    clusters.push(parts);
    parts.forEach(node => free.delete(node));
  }
  const size = parts => parts.reduce((sum, node) => sum + nodes.size[node], 0);
  return [...clusters, ...[...free].map(node => [node])].sort((p, q) => size(q) - size(p) || bySize(p[0], q[0]));
};
const rename = (node, name) => {
  if (name.trim()) given.names.set(node, name.trim());
  else given.names.delete(node);
};
const divide = node => {
  const parts = partsIn(node);
  given.merges = given.merges.filter(merge => !merge.some(other => parts.includes(other)));
};
const merge = (node, other) => {
  const parts = [...partsIn(node), ...partsIn(other)];
  divide(node);
  divide(other);
  given.merges.push(parts);
};

// The address: name=12:Birds for each name that is not Python's, merge=12.40.51 for each merge -----------------------

const rememberNames = parts => {
  for (const [node, name] of given.names) {
    if (data.words.names[node] !== name) parts.append("name", `${node}:${name}`);
  }
  for (const node of Object.keys(data.words.names)) {
    if (!given.names.has(Number(node))) parts.append("name", `${node}:`);
  }
  for (const nodesMerged of given.merges) parts.append("merge", nodesMerged.join("."));
};
const restoreNames = parts => {
  const isNode = node => Number.isInteger(node) && node >= 0 && node < nNodes;
  given.names = new Map(Object.entries(data.words.names).map(([node, name]) => [Number(node), name]));
  for (const value of parts.getAll("name")) {
    const [, digits, name] = value.match(/^(\d+):(.*)$/s) ?? [];
    if (isNode(Number(digits ?? NaN))) rename(Number(digits), name);
  }
  given.merges = parts.getAll("merge").map(value => [...new Set(value.split(".").map(Number).filter(isNode))]);
};

// The form on the card of a cluster ----------------------------------------------------------------------------------

const changed = change => (...values) => {
  change(...values);
  setNumber(state.k);
};
const formOf = node => {
  const name = html("input", {
    type: "text", value: given.names.get(node) ?? "", placeholder: named(node), "aria-label": "Name of the cluster",
    change: event => changed(rename)(node, event.target.value),
  });
  const others = cut.nodes.filter(other => other !== node);
  const choice = html("select", {
    "aria-label": "Merge with another cluster", change: event => changed(merge)(node, Number(event.target.value)),
  }, html("option", { value: "" }, "Merge with …"),
  ...others.map(other => html("option", { value: other }, `${named(other)} (${whole(sizeOf(other))})`)));
  const again = html("button", { type: "button", class: "quiet", click: () => changed(divide)(node) }, "Divide again");
  return html("details", { class: "edit" }, html("summary", {}, "Rename or merge"), name,
    ...(others.length ? [choice] : []), ...(partsIn(node).length > 1 ? [again] : []));
};
