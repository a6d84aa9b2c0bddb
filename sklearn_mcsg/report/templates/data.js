"use strict";
// The data of the page, unpacked, and small functions that all parts of the page use.
// Texts of the corpus are inserted as text nodes, never as markup.

const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const mcsg = { steps: 0 };  // texts visited in loops: tests bound the work of each interaction by it
window.mcsg = mcsg;
const LONG = 600;

// Unpacked by `unpack`: texts, their points at unit length, positions on the map, distances of random pairs
let texts, n, width, points, xs, ys, lines, leafOf, random, vocabulary;
const state = {
  k: 1, a: 0, b: 0, second: false, focus: -1, hits: null, query: "", lit: -1, colour: "", allCards: false,
};

const inflate = async packed => {
  const letters = atob(packed), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
};
const inflateJson = async packed => JSON.parse(new TextDecoder().decode(await inflate(packed)));

// Rows of small integers with one factor per column.
const unquantized = async ({ codes, factors, columns, bytes }) => {
  const values = new (bytes === 1 ? Int8Array : Int16Array)(await inflate(codes));
  const scale = new Float32Array(await inflate(factors));
  const rows = new Float32Array(values.length);
  for (let start = 0; start < rows.length; start += columns) {
    for (let d = 0; d < columns; d++) rows[start + d] = values[start + d] * scale[d];
  }
  return rows;
};
const normalize = (rows, columns) => {
  for (let start = 0; start < rows.length; start += columns) {
    let square = 0;
    for (let d = start; d < start + columns; d++) square += rows[d] * rows[d];
    const length = Math.sqrt(square) || 1;
    for (let d = start; d < start + columns; d++) rows[d] /= length;
    mcsg.steps++;
  }
};
const unpackVocabulary = async () => {
  const packed = data.vocabulary;
  if (!packed) return null;
  const floats = async name => new Float32Array(await inflate(packed[name]));
  const sizes = new Int16Array(await inflate(packed.sizes)), first = new Uint32Array(n + 1);
  for (let i = 0; i < n; i++) first[i + 1] = first[i] + Math.max(0, sizes[i]);
  mcsg.steps += n;
  return {
    ...packed, sizes, first, d: packed.vectors.columns,
    words: await inflateJson(packed.words),
    tokens: new (packed.wide ? Uint32Array : Uint16Array)(await inflate(packed.tokens)),
    vectors: await unquantized(packed.vectors),
    projection: await unquantized(packed.projection),
    weights: await floats("weights"), mean: await floats("mean"), variance: await floats("variance"),
    slope: await floats("slope"), centre: await floats("centre"), spread: await floats("spread"),
  };
};
const unpack = async () => {
  texts = await inflateJson(data.texts);
  n = texts.length;
  width = data.points.columns;
  points = await unquantized(data.points);
  normalize(points, width);
  const places = new Uint16Array(await inflate(data.map));
  xs = new Float32Array(n);
  ys = new Float32Array(n);
  for (let i = 0; i < n; i++) [xs[i], ys[i]] = [places[2 * i], places[2 * i + 1]];
  for (const values of [xs, ys]) {
    const low = values.reduce((u, v) => Math.min(u, v)), range = values.reduce((u, v) => Math.max(u, v)) - low;
    for (let i = 0; i < n; i++) values[i] = range ? (values[i] - low) / range : .5;
  }
  mcsg.steps += 3 * n;
  lines = data.lines && new Int32Array(await inflate(data.lines));
  random = Float32Array.from(new Uint16Array(await inflate(data.random)), distance => distance / 20000);
  leafOf = new Uint32Array(await inflate(data.tree.leafOf));
  for (const column of data.columns) {
    if (column.codes) column.codes = new (column.values ? Uint8Array : Uint16Array)(await inflate(column.codes));
    if (column.cells) column.cells = await inflateJson(column.cells);
  }
  vocabulary = await unpackVocabulary();
};

const cosine = (i, j) => {
  let sum = 0;
  for (let d = 0; d < width; d++) sum += points[i * width + d] * points[j * width + d];
  return Math.max(-1, Math.min(1, sum));
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
