// Two texts: their cosine, how rare it is among random pairs, the pairs of words it is made of, and neighbours.

const NEIGHBOURS = 8, CANDIDATES = 32, HEAT = 12, SMALL = .05, BINS = 56;

// The texts with coloured words --------------------------------------------------------------------------------------

const LETTER = /[\p{L}\p{N}\p{M}]/u;
const folding = text => Array.from({ length: text.length }, (_, i) => {
  const lower = text[i].toLowerCase();
  return lower.length === 1 ? lower.replace(/[\u2019\u02bc]/, "'") : text[i];
}).join("");

// Where each word of a text stands, in order: whole words only, or parts of words that follow each other.
const placesOf = (text, words) => {
  const whole = folding(text), found = [];
  let end = 0;
  const fits = (at, word, next) => {
    const after = at + word.length;
    return (at === end || !LETTER.test(whole[at - 1] || "") || !LETTER.test(word[0]))
      && (!LETTER.test(whole[after] || "") || !LETTER.test(word.at(-1)) || (next && whole.startsWith(next, after)));
  };
  for (const [k, word] of words.entries()) {
    let at = whole.indexOf(word, end);
    while (at >= 0 && !fits(at, word, words[k + 1])) at = whole.indexOf(word, at + 1);
    if (at < 0) continue;
    found.push([at, (end = at + word.length), k]);
  }
  return found;
};
const coloured = (text, value, most) => {
  const tone = most ? Math.abs(value) / most : 0;
  if (tone < .03) return text;
  const kind = value > 0 ? "for" : "against";
  const span = html("span", { class: `word ${kind}`, title: `${signed(value, 3)} of the cosine` }, text);
  span.style.setProperty("--tone", tone);
  return span;
};
const inColours = (i, words, sums, most) => {
  const value = new Map(words.map((word, w) => [folding(word), sums[w]])), text = texts[i].normalize("NFC");
  const inText = () => folding(text).match(/[\p{L}\p{N}\p{M}]+(?:['-][\p{L}\p{N}\p{M}]+)*/gu) ?? [];
  const order = vocabulary.condensed.has(i) ? inText().filter(word => value.has(word))
    : Array.from(tokensOf(i), word => folding(vocabulary.words[word]));
  const parts = [];
  let end = 0;
  for (const [from, to, k] of placesOf(text, order)) {
    parts.push(text.slice(end, from), coloured(text.slice(from, to), value.get(order[k]), most));
    end = to;
  }
  return [...parts, text.slice(end)];
};
const drawText = (letter, i, content) => {
  const long = texts[i].length > LONG, box = $(`text-${letter.toLowerCase()}`);
  box.replaceChildren(html("span", { class: "letter" }, letter),
    html("p", { class: "body", dir: "auto", tabindex: long ? 0 : null }, ...content), ofText(i, secondOf(i)));
  if (data.cut[i]) {
    const shown = `The first ${whole(texts[i].length)} of ${count(data.cut[i], "character")} are shown.`;
    box.append(html("p", { class: "of" }, shown));
  }
};

// The largest absolute value, found in a loop: Math.max(...values) fails for a hundred thousand values.
const magnitude = values => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

// The heat map -------------------------------------------------------------------------------------------------------

// The words of each side with the largest contributions, in the order of the text; small ones are added up. The last
// row and the last column may be sums of others already.
const condensed = ({ rows, columns, matrix, others = [0, 0] }) => {
  const most = magnitude(matrix.flat());
  const keep = (names, sizes, summed) => {
    const isWord = i => !summed || i < names.length - 1;
    const large = largest(sizes, HEAT, isWord).filter(i => sizes[i] >= SMALL * most).sort((p, q) => p - q);
    return large.length === names.length - 1 ? names.map((_, i) => i) : large;  // a single other word has its own row
  };
  const left = keep(rows, matrix.map(magnitude), others[0]);
  const right = keep(columns, columns.map((_, c) => magnitude(matrix.map(row => row[c]))), others[1]);
  const place = (chosen, length) =>
    Array.from({ length }, (_, i) => (chosen.includes(i) ? chosen.indexOf(i) : chosen.length));
  const [r, c] = [place(left, rows.length), place(right, columns.length)];
  const names = (chosen, all, summed) => {
    const rest = all.length - chosen.length, words = rest && summed ? rest - 1 + summed : rest;
    return [...chosen.map(i => all[i]), ...(rest ? [`${whole(words)} others`] : [])];
  };
  const result = { rows: names(left, rows, others[0]), columns: names(right, columns, others[1]) };
  result.matrix = result.rows.map(() => result.columns.map(() => 0));
  matrix.forEach((row, i) => row.forEach((value, j) => { result.matrix[r[i]][c[j]] += value; }));
  return result;
};
const cell = (value, most) => {
  const shown = Math.abs(value) >= .005 ? `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(2).slice(1)}` : "";
  const element = html("td", { class: value > 0 ? "for" : "against", title: signed(value, 4) }, shown);
  element.style.setProperty("--tone", most ? Math.abs(value) / most : 0);
  return element;
};
const strongest = ({ rows, columns, matrix, others }) => {
  const areWords = p => (!others[0] || p < (rows.length - 1) * columns.length)
    && (!others[1] || p % columns.length < columns.length - 1);
  const flat = matrix.flat(), m = columns.length;
  const name = p => `${rows[Math.floor(p / m)]} ~ ${columns[p % m]} ${signed(flat[p], 2)}`;
  return largest(flat, 3, areWords).filter(p => flat[p] >= .005).map(name);
};
const howNear = () => {
  const error = errorOfCosines(), share = "for 19 of 20 pairs that were checked";
  const how = error < .005 ? "less than 0.005" : `at most ${error.toFixed(2)}`;
  return `The page rounds word vectors: its cosines differ from exact ones by ${how} ${share}.`;
};
// Which words of long texts are compared one by one.
const howManyWords = ({ rows, columns, others }) => [rows, columns].map((names, side) => {
  if (!others[side]) return "";
  const shown = names.length - 1, all = `${whole(shown + others[side])} different words of text ${"AB"[side]}`;
  return ` Of the ${all}, the ${whole(shown)} most telling are compared one by one and the others together.`;
}).join("");
const drawHeat = (explanation, value) => {
  if (explanation.why) return $("heat").replaceChildren(html("p", { class: "hint small" }, explanation.why));
  const { rows, columns, matrix } = condensed(explanation), pairs = strongest(explanation);
  const most = magnitude(matrix.flat()) || 1, sum = matrix.flat().reduce((u, v) => u + v, 0);
  const heading = name => html("th", { scope: "col" }, html("span", {}, name));
  const head = html("tr", {}, html("th"), ...columns.map(heading));
  const body = matrix.map((row, r) =>
    html("tr", {}, html("th", { scope: "row" }, rows[r]), ...row.map(v => cell(v, most))));
  const told = pairs.length ? `: ${pairs.join(", ")}` : "";
  $("heat").replaceChildren(
    html("p", { class: "hint small" },
      html("span", { class: "word for" }, "Blue"), " pairs of words raise the cosine, ",
      html("span", { class: "word against" }, "orange"), ` pairs lower it${told}.`,
      howManyWords(explanation), ...(errorOfCosines() >= .005 ? [` ${howNear()}`] : [])),
    html("div", { class: "scroll-x", tabindex: 0, role: "region", "aria-label": "Pairs of words" },
      html("table", {}, html("thead", {}, head), html("tbody", {}, ...body))));
  $("heat").dataset.sum = sum.toFixed(4);
  $("heat").dataset.cosine = value.toFixed(4);
};

// The measure and the neighbours -------------------------------------------------------------------------------------

const byChance = distance => {
  const among = random, whose = "random pairs of these texts";
  let low = 0, high = among.length;  // the number of random pairs at most this far apart
  while (low < high) {
    const middle = (low + high) >> 1;
    if (among[middle] <= distance) low = middle + 1; else high = middle;
  }
  const share = (low + 1) / (among.length + 1);
  if (!low) return `None of ${whole(among.length)} ${whose} is this similar.`;
  if (share > .4) return `${Math.round(100 * share)} % of ${whose} are at least this similar.`;
  return `1 in ${whole(Math.round(1 / share))} ${whose} is at least this similar.`;
};
const bins = { of: null };
const histogram = value => {
  if (!bins.of) {
    bins.of = new Array(BINS).fill(0);
    random.forEach(distance => bins.of[Math.max(0, Math.min(BINS - 1, Math.floor((BINS * (2 - distance)) / 2)))]++);
  }
  const tallest = Math.max(...bins.of), x = 2 + (2 * BINS * (value + 1));
  const bars = wanted => bins.of.map((size, i) => (size && wanted(4 + 4 * i)
    ? `M${2 + 4 * i} 42v${-1 - (36 * size) / tallest}h3.2V42Z` : "")).join("");
  const drawing = picture(228, 44, svg("path", { class: "bars-of", d: bars(u => u < x) }),
    svg("path", { class: "bars-of above", d: bars(u => u >= x) }), svg("path", { class: "here", d: `M${x} 2V43` }));
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", "Histogram of the cosines of random pairs, with this cosine marked");
  return drawing;
};
// What is due to the order of words: the difference of the two cosines as they are shown.
const ofOrder = (value, { matrix, unordered }) => {
  const order = value.toFixed(2) - unordered.toFixed(2);
  const due = ` is due to the order of words; without it: ${decimal(unordered)}.`;
  const told = Math.abs(order) < .005 ? ["The order of words makes no difference."]
    : [html("b", {}, signed(order, 2)), due];
  const exact = sumOf(matrix.flat(), part => part) - unordered;
  return html("p", { class: "order", "data-order": exact.toFixed(4) }, ...told);
};
const cosinesWith = i => {
  const values = new Float32Array(n);
  for (let j = 0; j < n; j++) values[j] = cosineOfPoints(i, j);
  mcsg.steps += n;
  return values;
};
// The nearest texts: candidates by their points, in the order of the cosines that are shown.
const neighbours = { of: -1, cosines: new Map(), list: [] };
const findNeighbours = a => {
  if (neighbours.of === a) return;
  const candidates = largest(cosinesWith(a), CANDIDATES, j => j !== a);
  const cosines = new Map(candidates.map(j => [j, cosine(a, j)]));
  candidates.sort((i, j) => cosines.get(j) - cosines.get(i));
  Object.assign(neighbours, { of: a, cosines, list: candidates.slice(0, NEIGHBOURS) });
};
const drawNear = () => {
  $("near").replaceChildren(...neighbours.list.map(j => {
    const button = textButton(j, html("span", { class: "value" }, decimal(neighbours.cosines.get(j))));
    button.prepend(swatch(nodes.slot[cut.nodes[cut.clusterOf[j]]]));
    button.addEventListener("click", event => {
      event.stopImmediatePropagation();
      choosePair(state.a, j);
    }, { capture: true });
    return html("li", {}, button);
  }));
};
const drawPair = () => {
  const { a, b } = state;
  findNeighbours(a);
  if (n < 2 || a === b) return drawText("A", a, [texts[a] || "(empty)"]);
  const value = cosine(a, b), explanation = explain(a, b);
  const { why, words, sums } = explanation;
  const most = why ? 0 : magnitude(sums.flatMap((side, s) => side.filter((_, w) => words[s][w])));
  const content = (i, side) => (why ? [texts[i] || "(empty)"] : inColours(i, words[side], sums[side], most));
  drawText("A", a, content(a, 0));
  drawText("B", b, content(b, 1));
  const told = random.length ? [histogram(value), html("p", { class: "chance" }, byChance(1 - value))] : [];
  $("measure").replaceChildren(html("div", {}, html("strong", {}, decimal(value)), html("p", {}, "cosine")),
    ...told, ...(vocabulary?.ordered && !explanation.why ? [ofOrder(value, explanation)] : []));
  drawHeat(explanation, value);
  drawNear();
};

// Selection: the first choice is A, and its nearest text is B until another text is chosen ---------------------------

const choosePair = (a, b, second = false) => {
  Object.assign(state, { a, b, second });
  drawPair();
  drawMarks();
  document.querySelectorAll("[data-text]").forEach(markChosen);
  $("map-hint").textContent = second
    ? "A is shown with its nearest text. Choose another text to compare with A."
    : "Similar texts are close to each other. Choose a text, then another to compare with it.";
  remember();
};
const choose = i => {
  if (n < 2) return;
  if (state.second && i !== state.a) return choosePair(state.a, i);
  findNeighbours(i);
  choosePair(i, neighbours.list[0], true);
  speak(`A is ${texts[i].slice(0, LONG)}`);
};
