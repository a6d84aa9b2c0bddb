"use strict";
// Selection, pair, map and clusters. Texts of the corpus are inserted as text nodes, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const { clusters, clusterOf } = data;
const full = data.texts.map(parts => parts.join(""));
const n = full.length;
const every = [...full.keys()];
const state = { a: 0, b: 0, second: false, focus: -1, matching: null, lit: -1, allCards: false };
const COLOURS = 12, SHAPES = 4, GREY = 12, CARDS = 24, TYPICAL = 3, NEIGHBOURS = 8, REACH = 26, LONG = 600;

// Elements -----------------------------------------------------------------------------------------------------------

const $ = id => document.getElementById(id);

// Return a function that creates an element with attributes, listeners and children.
const maker = space => (tag, attributes = {}, ...children) => {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};
const html = maker(null);
const svg = maker("http://www.w3.org/2000/svg");
const picture = (width, height, ...children) => svg("svg", { viewBox: `0 0 ${width} ${height}` }, ...children);

const pen = document.createElement("canvas").getContext("2d");
const widthOf = (text, font) => {
  pen.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
};

const whole = value => value.toLocaleString("en");
const count = (value, noun) => `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
const number = value => (value < 100 ? value.toFixed(2) : whole(Math.round(value)));

// Colours and shapes: twelve colours, then other shapes; clusters of one text are hollow and grey --------------------

const alone = k => clusters[k].size === 1 && clusters.length > 1;
const colour = k => `c${k < 0 || alone(k) ? GREY : k % COLOURS}`;
const OUTLINES = [
  [[-.87, -.87], [.87, -.87], [.87, .87], [-.87, .87]],
  [[0, -1.28], [1.28, 0], [0, 1.28], [-1.28, 0]],
  [[0, -1.25], [1.2, .85], [-1.2, .85]],
];

const point = (k, x, y, r) => {
  const kind = alone(k) ? 0 : Math.floor(k / COLOURS) % SHAPES;
  const name = `point ${colour(k)}${alone(k) ? " single" : ""}`;
  if (!kind) return svg("circle", { class: name, cx: x, cy: y, r });
  return svg("polygon", { class: name, points: OUTLINES[kind - 1].map(([u, v]) => [x + u * r, y + v * r]).join(" ") });
};
const swatch = k => {
  const mark = picture(12, 12, point(k, 6, 6, 5));
  mark.setAttribute("class", "swatch");
  mark.setAttribute("aria-hidden", "true");
  return mark;
};
const named = (k, most = 3) => clusters[k].words.slice(0, most).join(", ") || "no known words";

// Numbers of all pairs -----------------------------------------------------------------------------------------------

const pairs = {};
const nWords = data.words.map(words => (typeof words === "number" ? words : words.length));
const firstWord = [0];
nWords.forEach((k, i) => firstWord.push(firstWord[i] + k));

const inflate = async packed => {
  const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
};
const unpack = async () => {
  pairs.distances = new Float32Array(await inflate(data.distances));
  pairs.chance = new Uint16Array(await inflate(data.chance));
  pairs.tones = new Int8Array(await inflate(data.tones));
};
const place = (i, j) => (i < j ? n * i - (i * (i + 3)) / 2 + j - 1 : place(j, i));
const distance = (i, j) => (i === j ? 0 : pairs.distances[place(i, j)]);
const tone = (i, word, j) => pairs.tones[(firstWord[i] + word) * n + j] / data.levels;
const nearest = i => every.filter(j => j !== i).sort((j, k) => distance(i, j) - distance(i, k));

// The closest pair of different texts that have known words.
const nearestPair = () => {
  let best = [0, Math.min(1, n - 1)], least = Infinity;
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) {
      const differ = full[i] !== full[j] && nWords[i] && nWords[j];
      if (differ && distance(i, j) < least) [best, least] = [[i, j], distance(i, j)];
    }
  }
  return best;
};

// Selection: the first choice is A, and its nearest text is B until another text is chosen ---------------------------

const choosePair = (a, b, second = false) => {
  Object.assign(state, { a, b, second });
  drawPair();
  drawChoice();
  document.querySelectorAll("[data-text]").forEach(markChosen);
};
const choose = i => {
  if (n < 2) return;
  if (state.second && i !== state.a) choosePair(state.a, i);
  else choosePair(i, nearest(i)[0], true);
};
const markChosen = button => {
  const letter = { [state.b]: "B", [state.a]: "A" }[button.dataset.text];
  button.toggleAttribute("aria-current", Boolean(letter));
  if (letter) button.dataset.letter = letter;
};
const excerpt = i => html("span", { class: "clamp", dir: "auto" }, full[i].slice(0, LONG) || "(empty)");
const textButton = (i, action = () => choose(i)) => {
  const button = html("button", { type: "button", "data-text": i, click: action }, excerpt(i));
  markChosen(button);
  return button;
};

// The pair -----------------------------------------------------------------------------------------------------------

const coloured = (i, word, j, text) => {
  const value = tone(i, word, j), strength = Math.abs(value);
  if (!value) return text;
  const title = `makes them ${value > 0 ? "similar" : "different"}, ${strength.toFixed(1)} times the strongest word`;
  const span = html("span", { class: `word ${value > 0 ? "for" : "against"}`, title }, text);
  span.style.setProperty("--tone", strength);
  return span;
};
const inColours = (i, j) => {
  const ids = data.ids[i];
  if (ids) return data.texts[i].map((part, k) => (k % 2 ? coloured(i, ids[(k - 1) / 2], j, part) : part));
  return data.words[i].flatMap((word, k) => [coloured(i, k, j, word), " "]);
};
const drawText = (letter, i, j) => {
  const found = data.ids[i], k = clusterOf[i], box = $(`text-${letter.toLowerCase()}`);
  box.replaceChildren(
    html("span", { class: "letter" }, letter),
    html("p", { dir: "auto", tabindex: full[i].length > LONG ? 0 : null }, ...(found ? inColours(i, j) : [full[i]])),
    html("p", { class: "of" }, swatch(k), named(k)),
  );
  if (!found) box.append(html("p", { dir: "auto" }, ...inColours(i, j)));
  if (!nWords[i]) box.append(html("p", { class: "of" }, "This text has no words."));
};

const byChance = (i, j) => {
  const among = "random pairs of similar length from this corpus";
  const nth = pairs.chance[place(i, j)], share = nth / data.whole;
  if (nth <= 1) return `None of ${whole(data.whole - 1)} ${among} is this close.`;
  if (share > .4) return `${Math.round(100 * share)} % of ${among} are at least this close.`;
  return `1 in ${whole(Math.round(1 / share))} ${among} is at least this close.`;
};
const histogram = value => {
  const bins = 56, most = pairs.distances.reduce((x, y) => Math.max(x, y), 0) || 1;
  const counts = new Array(bins).fill(0);
  pairs.distances.forEach(d => counts[Math.min(bins - 1, Math.floor((bins * d) / most))]++);
  const tallest = Math.max(...counts), x = 4 + (4 * bins * value) / most;
  const bar = (k, i) => (k ? `M${4 + 4 * i} 42v${-1 - (36 * k) / tallest}h3.2V42Z` : "");
  const bars = chosen => counts.map((k, i) => (chosen(6 + 4 * i) ? bar(k, i) : "")).join("");
  const drawing = picture(232, 44,
    svg("path", { class: "bars below", d: bars(u => u < x) }),
    svg("path", { class: "bars", d: bars(u => u >= x) }),
    svg("path", { class: "mark", d: `M${x} 2V43` }));
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", "Histogram of all distances, with this distance marked");
  return drawing;
};
const drawPair = () => {
  const { a, b } = state;
  drawText("A", a, b);
  if (n < 2) return;
  drawText("B", b, a);
  const value = distance(a, b), told = [histogram(value), html("p", { class: "chance" }, byChance(a, b))];
  $("measure").replaceChildren(
    html("div", {}, html("strong", {}, number(value)), html("p", {}, data.output)), ...(data.whole ? told : []));
  $("near").replaceChildren(...nearest(a).slice(0, NEIGHBOURS).map(j => {
    const button = textButton(j, () => choosePair(a, j));
    button.prepend(swatch(clusterOf[j]));
    button.append(html("span", { class: "value" }, number(distance(a, j))));
    return html("li", {}, button);
  }));
};

// The tooltip --------------------------------------------------------------------------------------------------------

const showTip = (x, y, ...children) => {
  const tip = $("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const beside = (at, size, room) => (at + 16 + size < room - 8 ? at + 16 : Math.max(8, at - size - 16));
  tip.style.left = `${beside(x, width, innerWidth)}px`;
  tip.style.top = `${beside(y, height, innerHeight)}px`;
};
const hideTip = () => { $("tip").hidden = true; };
const ofCluster = k => html("div", { class: "of" }, swatch(k), named(k));
const about = i => [excerpt(i), ofCluster(clusterOf[i])];
const pointerIn = (event, box, width) => {
  const frame = box.firstChild.getBoundingClientRect(), scale = width / frame.width;
  return [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
};

// The map ------------------------------------------------------------------------------------------------------------

const map = { width: 0, height: 0, size: 0, at: [], dots: [], labels: [], overlay: null };

const drawMap = () => {
  const width = $("map").clientWidth, height = Math.round(Math.min(620, Math.max(340, width * .86)));
  const size = (n > 200 ? 4.6 : n > 60 ? 5.5 : 7) * (width < 500 ? .78 : 1), edge = Math.min(44, width * .07);
  const along = (d, room) => {
    const values = data.map.map(p => p[d]), low = Math.min(...values), range = Math.max(...values) - low;
    return values.map(v => (range ? edge + ((v - low) / range) * (room - 2 * edge) : room / 2));
  };
  const xs = along(0, width), ys = along(1, height);
  Object.assign(map, { width, height, size, at: xs.map((x, i) => [x, ys[i]]), overlay: svg("g") });
  map.dots = map.at.map(([x, y], i) => point(clusterOf[i], x, y, size));
  map.dots.forEach((dot, i) => dot.setAttribute("data-point", i));
  map.labels = placeLabels();
  $("map").replaceChildren(picture(width, height, svg("g", {}, ...map.dots), svg("g", {}, ...map.labels), map.overlay));
  drawChoice();
  drawEmphasis();
};

const SHIFTS = [0, -15, 15, -30, 30, -45, 45, -60, 60].flatMap(dy => [0, -24, 24, -48, 48].map(dx => [dx, dy]));
const median = values => values.sort((u, v) => u - v)[Math.floor(values.length / 2)];
const overlap = (p, q) => p[0] < q[2] && q[0] < p[2] && p[1] < q[3] && q[1] < p[3];

// Place a label near the median of its cluster, where it hides the fewest points and no other label.
const placeLabel = (k, half, taken) => {
  const [left, top] = [0, 1].map(d => median(clusters[k].members.map(i => map.at[i][d])));
  const dots = map.at.map(([x, y]) => [x - map.size, y - map.size, x + map.size, y + map.size]);
  let best = null, least = Infinity;
  for (const [dx, dy] of SHIFTS) {
    const x = Math.min(map.width - half - 4, Math.max(half + 4, left + dx)), y = top + dy;
    const box = [x - half, y - 11, x + half, y + 11];
    if (box[1] < 2 || box[3] > map.height - 2 || taken.some(other => overlap(box, other))) continue;
    const cost = 3 * dots.filter(dot => overlap(box, dot)).length + Math.hypot(dx, dy) / 12;
    if (cost < least) [best, least] = [{ x, y, box }, cost];
  }
  return best;
};
const placeLabels = () => {
  const taken = [], labels = [];
  for (const k of [...clusters.keys()].slice(0, map.width < 500 ? 12 : 20)) {
    if (alone(k) || !clusters[k].members.length || !clusters[k].words.length) continue;
    const words = named(k, map.width < 500 ? 1 : 2), half = widthOf(words, "600 12.5px") / 2 + 9;
    const found = placeLabel(k, half, taken);
    if (!found) continue;
    taken.push(found.box);
    labels.push(svg("g", { class: `label ${colour(k)}`, "data-cluster": k },
      svg("rect", { x: found.x - half, y: found.y - 10, width: 2 * half, height: 20, rx: 10 }),
      svg("text", { x: found.x, y: found.y + 4.2, "text-anchor": "middle" }, words)));
  }
  return labels;
};

const badge = (letter, i, other) => {
  const [x, y] = map.at[i], [u, v] = map.at[other], far = map.size + 14;
  const angle = i === other ? -Math.PI / 2 : Math.atan2(y - v, x - u);
  const [cx, cy] = [x + far * Math.cos(angle), y + far * Math.sin(angle)];
  return [
    svg("circle", { class: "ring", cx: x, cy: y, r: map.size + 3 }),
    svg("circle", { class: "badge", cx, cy, r: 9 }),
    svg("text", { class: "badge-letter", x: cx, y: cy + .5 }, letter),
  ];
};
const drawChoice = () => {
  const { a, b, focus } = state, marks = [...badge("A", a, b)];
  if (a !== b) {
    marks.unshift(svg("path", { class: "thread", d: `M${map.at[a].join(" ")}L${map.at[b].join(" ")}` }));
    marks.push(...badge("B", b, a));
  }
  if (focus >= 0) {
    marks.push(svg("circle", { class: "reticle", cx: map.at[focus][0], cy: map.at[focus][1], r: map.size + 6 }));
  }
  map.overlay.replaceChildren(...marks);
  $("map-hint").textContent = state.second
    ? "A is shown with its nearest text. Choose another text to compare with A."
    : "Texts close to each other are similar. Choose a text, then another to compare with it.";
};
const drawEmphasis = () => {
  const { matching, lit } = state;
  const shown = i => (!matching || matching.has(i)) && (lit < 0 || clusterOf[i] === lit);
  map.dots.forEach((dot, i) => dot.classList.toggle("faint", !shown(i)));
  map.labels.forEach(label => label.classList.toggle("faint", !clusters[label.dataset.cluster].members.some(shown)));
};
const light = k => {
  state.lit = k;
  drawEmphasis();
};

const pointAt = event => {
  const [x, y] = pointerIn(event, $("map"), map.width), far = i => Math.hypot(map.at[i][0] - x, map.at[i][1] - y);
  const best = every.reduce((i, j) => (far(j) < far(i) ? j : i));
  return far(best) < REACH ? best : -1;
};
const showPoint = i => {
  const frame = $("map").getBoundingClientRect();
  showTip(frame.left + map.at[i][0], frame.top + map.at[i][1], ...about(i));
};

// The point an arrow key moves to: ahead of the current point, and not far to the side.
const towards = key => {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const [x, y] = map.at[state.focus];
  const effort = i => {
    const u = map.at[i][0] - x, v = map.at[i][1] - y, ahead = u * dx + v * dy;
    return ahead > .5 ? ahead + 2.5 * Math.abs(u * dy - v * dx) : Infinity;
  };
  return every.reduce((i, j) => (effort(j) < effort(i) ? j : i), state.focus);
};
const moveFocus = i => {
  state.focus = i;
  drawChoice();
  if (i < 0) return hideTip();
  showPoint(i);
  $("spoken").textContent = full[i].slice(0, LONG);
};
const listenToMap = () => {
  const box = $("map");
  box.addEventListener("pointermove", event => {
    const i = event.pointerType === "touch" ? -1 : pointAt(event);
    if (i < 0) hideTip();
    else showPoint(i);
  });
  box.addEventListener("pointerleave", hideTip);
  box.addEventListener("click", event => {
    const i = pointAt(event);
    if (i >= 0) choose(i);
  });
  box.addEventListener("focus", () => { if (box.matches(":focus-visible")) moveFocus(state.a); });
  box.addEventListener("blur", () => moveFocus(-1));
  box.addEventListener("keydown", event => {
    const arrow = event.key.startsWith("Arrow"), enter = event.key === "Enter" || event.key === " ";
    if (arrow) moveFocus(state.focus < 0 ? state.a : towards(event.key));
    if (enter && state.focus >= 0) choose(state.focus);
    if (arrow || enter) event.preventDefault();
  });
};

// Clusters -----------------------------------------------------------------------------------------------------------

const listed = texts => html("ul", { class: "members" }, ...texts.map(i => html("li", {}, textButton(i))));
const others = (texts, size) => {
  const some = `${whole(texts.length)} of ${whole(size)} texts ${texts.length === 1 ? "is" : "are"} shown`;
  if (texts.length <= TYPICAL) return texts.length < size ? [html("p", { class: "some" }, some)] : [];
  const details = html("details", {}, html("summary", {}, texts.length < size ? some : `All ${whole(size)} texts`));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(listed(texts));
  });
  return [details];
};
const card = (k, heading, words, texts, size) => html("article",
  { class: `card ${colour(k)}`, mouseenter: () => light(k), mouseleave: () => light(-1) },
  html("span", { class: "size" }, count(size, "text")),
  html("h3", {}, ...heading),
  html("p", { class: "more-words" }, words),
  ...(state.matching ? [listed(texts)] : [listed(texts.slice(0, TYPICAL)), ...others(texts, size)]));

const drawClusters = () => {
  const { matching, allCards } = state, keys = [...clusters.keys()];
  const shown = k => clusters[k].members.filter(i => !matching || matching.has(i));
  const large = keys.filter(k => !alone(k)), single = keys.filter(alone), lonely = single.flatMap(shown);
  const chosen = matching ? large.filter(k => shown(k).length) : allCards ? large : large.slice(0, CARDS);
  const cards = chosen.map(k =>
    card(k, [swatch(k), named(k)], clusters[k].words.slice(3).join(", "), shown(k), clusters[k].size));
  if (lonely.length) {
    cards.push(card(-1, ["Single texts"], "Each is a cluster of its own.", lonely, single.length));
  }
  $("clusters").replaceChildren(...cards);
  $("more").hidden = Boolean(matching) || allCards || large.length <= CARDS;
  $("more").textContent = `Show ${count(large.length - CARDS, "smaller cluster")}`;
};

const filter = () => {
  const terms = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = i => terms.every(term => full[i].toLowerCase().includes(term));
  state.matching = terms.length ? new Set(every.filter(fits)) : null;
  $("matches").textContent = state.matching ? `${whole(state.matching.size)} of ${count(n, "text")} match` : "";
  drawEmphasis();
  drawClusters();
};
