// Lists of texts: cards of clusters with bars of words, and outliers; the table to download.

const CARDS = 24, BARS = 6, LISTED = 100;

const markChosen = button => {
  const letter = { [state.b]: "B", [state.a]: "A" }[button.dataset.text];
  button.ariaCurrent = letter ? "true" : null;
  if (letter) button.dataset.letter = letter;
};
const textButton = (i, ...further) => {
  const button = html("button", { type: "button", "data-text": i, click: () => choose(i) }, excerpt(i), ...further);
  markChosen(button);
  return button;
};
const listed = some => some.map(i => html("li", {}, textButton(i)));
const withColumns = (i, ...further) => {
  const values = valuesOf(i);
  const below = values.length ? [html("span", { class: "of" }, ...values)] : [];
  return html("li", {}, textButton(i, ...further, ...below));
};

// The different ones of some texts, each with how often it is among them. Equal texts with other values in their columns
// are different.
const distinctOf = some => {
  const seen = new Map();
  for (const i of some) {
    const key = JSON.stringify([texts[i], data.cut[i] ?? 0, ...columnsShown().map(({ cells }) => cells[i])]);
    const found = seen.get(key);
    if (found) found.times++; else seen.set(key, { i, times: 1 });
  }
  return [...seen.values()];
};
const timesOf = times => (times > 1 ? [html("span", { class: "value" }, `×${whole(times)}`)] : []);

// A list of at most a hundred different texts at a time, with a button for more.
const fillList = (list, more, some) => {
  const different = distinctOf(some);
  const add = () => {
    const from = list.children.length, upTo = Math.min(different.length, from + LISTED);
    list.append(...different.slice(from, upTo).map(({ i, times }) => withColumns(i, ...timesOf(times))));
    more.hidden = upTo === different.length;
    more.textContent = `Show more (${whole(different.length - upTo)} left)`;
  };
  list.replaceChildren();
  more.onclick = add;
  add();
};

// Cards --------------------------------------------------------------------------------------------------------------

const bar = ({ name, here, everywhere }, longest) => {
  const fill = html("span", { class: "fill" }), mark = html("span", { class: "mark" });
  fill.style.width = `${(100 * here) / longest}%`;
  mark.style.insetInlineStart = `${Math.min(100, (100 * everywhere) / longest)}%`;
  return html("li", { title: `${percent(here)} of this cluster's texts, ${percent(everywhere)} of all` },
    html("span", { class: "name", dir: "auto" }, name),
    html("span", { class: "track", "aria-hidden": "true" }, fill, mark),
    html("span", { class: "share" }, percent(here)),
    html("span", { class: "unseen" }, `of the cluster, ${percent(everywhere)} of all texts`));
};
const everyText = (c, size) => {
  const list = html("ul", { class: "members" }), more = html("button", { type: "button", class: "quiet" });
  const every = lines ? "All texts that are shown" : `All ${whole(size)} texts`;
  const details = html("details", {}, html("summary", {}, every));
  details.addEventListener("toggle", () => {
    if (!details.open || list.isConnected) return;
    details.append(html("div", { class: "scroll" }, list, more));
    fillList(list, more, membersOf(c));
  });
  return details;
};
const mergedParts = node => html("ul", { class: "parts" }, ...partsIn(node).map(part =>
  html("li", {}, wordsNamed(part, 4).join(", ") || "no words",
    html("span", { class: "soft" }, ` ${count(nodes.size[part], "text")}`))));
const card = (c, longest) => {
  const node = cut.nodes[c], size = sizeOf(node), bars = partsIn(node).length > 1 ? [] : wordsOf(node).slice(0, BARS);
  return html("article",
    { class: `card ${colourOf(node)}`, "data-cluster": c, mouseenter: () => light(c), mouseleave: () => light(-1) },
    html("span", { class: "size" }, count(size, "text")),
    html("h3", {}, swatch(nodes.slot[node]), named(node)), ...stabilityOf(node),
    bars.length ? html("ul", { class: "bars" }, ...bars.map(word => bar(word, longest))) : mergedParts(node),
    html("ul", { class: "members" }, ...listed(cut.typical[c])),
    ...(size > cut.typical[c].length ? [everyText(c, size)] : []), formOf(node));
};
const drawClusters = () => {
  const every = cut.nodes.length, shown = state.allCards ? every : Math.min(every, CARDS);
  const shares = cut.nodes.slice(0, shown).flatMap(node => wordsOf(node).slice(0, BARS).map(word => word.here));
  const longest = Math.max(.01, ...shares);
  $("clusters").replaceChildren(...cut.nodes.slice(0, shown).map((_, c) => card(c, longest)));
  drawCertainty();
  $("more").hidden = shown === every;
  $("more").textContent = `Show ${count(every - shown, "smaller cluster")}`;
};
const light = c => {
  if (state.lit === c) return;
  state.lit = c;
  redrawSoon();
};

// Outliers -----------------------------------------------------------------------------------------------------------

const drawOutliers = () => {
  const { given } = data.tree;
  $("outliers-hint").textContent = `Texts farthest from the centre of their cluster, at ${count(given, "cluster")}.`;
  const distances = new Map(data.outliers);
  $("outliers").replaceChildren(...distinctOf([...distances.keys()]).map(({ i, times }) =>
    withColumns(i, html("span", { class: "value" }, decimal(distances.get(i))), ...timesOf(times))));
};

// The table ----------------------------------------------------------------------------------------------------------

// A field for spreadsheets: one that would begin a formula gets an apostrophe in front, unless it is a number.
const field = text => {
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
// The names of columns, of which those of the input remain as they are: the command renames its own in the same way.
const heading = names => {
  const free = name => (names.includes(name) ? free(`mcsg_${name}`) : name);
  return [...["number", "text"].map(free), ...names, ...["cluster", "label", "distance"].map(free)];
};
const table = () => {
  const columns = columnsShown(), rows = [heading(columns.map(({ name }) => name)).map(field).join(",")];
  for (let i = 0; i < n; i++) {
    const c = cut.clusterOf[i], text = data.cut[i] ? `${texts[i]}…` : texts[i];
    const number = (lines ? lines[i] : i) + 1, label = named(cut.nodes[c]);
    const values = columns.map(({ cells }) => field(cells[i]));
    rows.push([number, field(text), ...values, c + 1, field(label), cut.distance[i].toFixed(cut.digits)].join(","));
  }
  mcsg.steps += n;
  return `\ufeff${rows.join("\r\n")}\r\n`;
};
const download = () => {
  const address = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  html("a", { href: address, download: `clusters-${state.k}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};
