"use strict";
// The data of the page, unpacked, and small functions that all parts of the page use.
// Texts of the corpus are inserted as text nodes, never as markup.

document.documentElement.dataset.script = "";  // until then, styles hide what only the script fills
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const mcsg = { steps: 0 };  // texts visited in loops: tests bound the work of each interaction by it
window.mcsg = mcsg;
const LONG = 600;

// What `unpack` fills: texts, their points as whole numbers, the lengths of the points, positions on the map, distances
// of random pairs
let texts, n, width, points, lengths, xs, ys, lines, leafOf, random, exactDistances, vocabulary;
const state = {
  k: 1, a: 0, b: 0, second: false, focus: -1, hits: null, query: "", lit: -1, colour: "", over: "", allCards: false,
};

// Base 85: five signs are four bytes; at the end, one sign more than bytes.
const SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%,()*+-;.=/?@^_`{|}~";
const bytesOf = packed => {
  const values = new Uint8Array(128), full = packed.length + ((5 - (packed.length % 5)) % 5);
  const bytes = new Uint8Array((full / 5) * 4), view = new DataView(bytes.buffer);
  for (let s = 0; s < SIGNS.length; s++) values[SIGNS.charCodeAt(s)] = s;
  for (let at = 0; at < full; at += 5) {
    let number = 0;
    for (let s = at; s < at + 5; s++) number = number * 85 + (s < packed.length ? values[packed.charCodeAt(s)] : 84);
    view.setUint32((at / 5) * 4, number);
  }
  return bytes.subarray(0, bytes.length - (full - packed.length));
};
const inflate = async packed => {
  const bytes = bytesOf(packed);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
};
const inflateJson = async packed => JSON.parse(new TextDecoder().decode(await inflate(packed)));

// Rows of whole numbers, which are packed column by column.
const unpackRows = async ({ codes, columns, bytes }) => {
  const Whole = bytes === 1 ? Int8Array : Int16Array, packed = new Whole(await inflate(codes));
  const nRows = packed.length / columns, rows = new Whole(packed.length);
  for (let d = 0, at = 0; d < columns; d++) {
    for (let i = 0; i < nRows; i++, at++) rows[i * columns + d] = packed[at];
  }
  return rows;
};
const measurePoints = () => {
  lengths = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    let square = 0;
    for (let at = i * width; at < (i + 1) * width; at++) square += points[at] * points[at];
    lengths[i] = Math.sqrt(square) || 1;
  }
  mcsg.steps += n;
};
// The order in which texts are packed: by leaf of the tree.
const orderOfTexts = () => {
  const order = Array.from(leafOf, (_, i) => i);
  mcsg.steps += n;
  return order.sort((i, j) => leafOf[i] - leafOf[j] || i - j);
};
const unpackMap = async () => {
  const places = new Uint16Array(await inflate(data.map));
  xs = new Float32Array(n);
  ys = new Float32Array(n);
  for (let i = 0; i < n; i++) [xs[i], ys[i]] = [places[2 * i], places[2 * i + 1]];
  for (const values of [xs, ys]) {
    const low = values.reduce((u, v) => Math.min(u, v)), range = values.reduce((u, v) => Math.max(u, v)) - low;
    for (let i = 0; i < n; i++) values[i] = range ? (values[i] - low) / range : .5;
  }
  mcsg.steps += 3 * n;
};
const unpack = async () => {
  leafOf = new Uint32Array(await inflate(data.tree.leafOf));
  n = leafOf.length;
  const order = orderOfTexts(), packed = await inflateJson(data.texts);
  texts = new Array(n);
  order.forEach((i, place) => { texts[i] = packed[place]; });
  width = data.points.columns;
  points = await unpackRows(data.points);
  measurePoints();
  await unpackMap();
  lines = data.lines && new Int32Array(await inflate(data.lines));
  const unpackDistances = async packed =>
    Float32Array.from(new Uint16Array(await inflate(packed)), value => value / 20000);
  random = await unpackDistances(data.random);
  exactDistances = await unpackDistances(data.distances);
  for (const column of data.columns) {
    if (column.codes) column.codes = new (column.values ? Uint8Array : Uint16Array)(await inflate(column.codes));
    if (column.cells) column.cells = await inflateJson(column.cells);
  }
  for (const column of data.periods) column.counts = new Uint32Array(await inflate(column.counts));
  vocabulary = data.vocabulary && await unpackVocabulary(data.vocabulary, order);
};

// The cosine of two points, which have few digits if there are many texts.
const cosineOfPoints = (i, j) => {
  let sum = 0;
  for (let d = 0; d < width; d++) sum += points[i * width + d] * points[j * width + d];
  return Math.max(-1, Math.min(1, sum / (lengths[i] * lengths[j])));
};

// The positions of the largest values, the largest first, in one pass.
const largest = (values, most, allowed = () => true) => {
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === most && values[i] <= values[best[most - 1]]) continue;
    if (!allowed(i)) continue;
    let place = best.length;
    while (place && values[best[place - 1]] < values[i]) place--;
    best.splice(place, 0, i);
    if (best.length > most) best.pop();
  }
  mcsg.steps += values.length;
  return best;
};

// Elements -----------------------------------------------------------------------------------------------------------

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
const picture = (w, h, ...children) => svg("svg", { viewBox: `0 0 ${w} ${h}` }, ...children);

const pen = document.createElement("canvas").getContext("2d");
const widthOf = (text, font) => {
  pen.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
};

const whole = value => value.toLocaleString("en");
const count = (value, noun) => `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
const signed = (value, digits) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
const decimal = value => `${value < -.005 ? "−" : ""}${Math.abs(value).toFixed(2)}`;
const percent = share => `${share > 0 && share < .01 ? "<1" : Math.round(100 * share)} %`;

const excerpt = i => html("span", { class: "clamp", dir: "auto" }, texts[i].slice(0, LONG) || "(empty)");
const columnsShown = () => data.columns.filter(({ cells }) => cells);
const columnsOfColour = () => data.columns.filter(({ codes }) => codes);
const valuesOf = i => columnsShown().map(({ name, cells }) =>
  html("span", { dir: "auto" }, `${name}: ${cells[i] || "–"}`));
const speak = text => { $("spoken").textContent = text; };

const showTip = (x, y, ...children) => {
  const tip = $("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const beside = (at, size, room) => (at + 16 + size < room - 8 ? at + 16 : Math.max(8, at - size - 16));
  tip.style.left = `${beside(x, box.width, innerWidth)}px`;
  tip.style.top = `${beside(y, box.height, innerHeight)}px`;
};
const hideTip = () => { $("tip").hidden = true; };
