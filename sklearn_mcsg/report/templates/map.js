// The map: points on a canvas with zoom and pan, labels, and marks of the chosen texts.

const REACH = 22, MOST_ZOOM = 60, CELLS = 64, FAINT = .1;
const RAMP = ["#2b6cb0", "#1f8fa3", "#2f9e6e", "#7fae2f", "#d3a108", "#e07b1a", "#d9480f"];
const view = { room: 0, height: 0, edge: 30, zoom: 1, x: 0, y: 0, radius: 3 };
const grid = { first: null, texts: null };

const xOf = i => view.zoom * (view.edge + xs[i] * (view.room - 2 * view.edge)) + view.x;
const yOf = i => view.zoom * (view.edge + ys[i] * (view.height - 2 * view.edge)) + view.y;

// Texts by cells of a grid, so that a pointer looks only at those around it.
const buildGrid = () => {
  const along = value => Math.min(CELLS - 1, Math.floor(value * CELLS));
  const cellOf = i => along(ys[i]) * CELLS + along(xs[i]);
  grid.first = new Uint32Array(CELLS * CELLS + 1);
  for (let i = 0; i < n; i++) grid.first[cellOf(i) + 1]++;
  for (let c = 0; c < CELLS * CELLS; c++) grid.first[c + 1] += grid.first[c];
  const next = grid.first.slice();
  grid.texts = new Uint32Array(n);
  for (let i = 0; i < n; i++) grid.texts[next[cellOf(i)]++] = i;
  mcsg.steps += 2 * n;
};
const textAt = (x, y) => {
  const span = (at, move, room) => {
    const inner = room - 2 * view.edge, unit = value => ((value - move) / view.zoom - view.edge) / inner;
    return [unit(at - REACH), unit(at + REACH)].map(u => Math.max(0, Math.min(CELLS - 1, Math.floor(u * CELLS))));
  };
  const [left, right] = span(x, view.x, view.room), [top, bottom] = span(y, view.y, view.height);
  let best = -1, least = REACH;
  for (let row = top; row <= bottom; row++) {
    for (let c = grid.first[row * CELLS + left]; c < grid.first[row * CELLS + right + 1]; c++) {
      const i = grid.texts[c], far = Math.hypot(xOf(i) - x, yOf(i) - y);
      if (far < least) [best, least] = [i, far];
      mcsg.steps++;
    }
  }
  return best;
};

// Colours of texts ---------------------------------------------------------------------------------------------------

const chosenColumn = () => columnsOfColour().find(column => column.name === state.colour);

// The style of each text, as a number: twelve colours times four shapes, grey, then the ramp of numbers.
const styles = { of: null };
const PLAIN = COLOURS * SHAPES, STEPS = 24;
const rampAt = share => {
  const place = share * (RAMP.length - 1), low = Math.min(RAMP.length - 2, Math.floor(place)), t = place - low;
  const part = (hex, c) => parseInt(hex.slice(1 + 2 * c, 3 + 2 * c), 16);
  return `rgb(${[0, 1, 2].map(c => Math.round(part(RAMP[low], c) * (1 - t) + part(RAMP[low + 1], c) * t)).join(" ")})`;
};
const colourTexts = () => {
  const column = chosenColumn();
  styles.of = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    if (!column) styles.of[i] = nodes.slot[cut.nodes[cut.clusterOf[i]]] % PLAIN;
    else if (column.values) styles.of[i] = column.codes[i] < COLOURS ? column.codes[i] : PLAIN;
    else styles.of[i] = column.codes[i] === 65535 ? PLAIN : PLAIN + 1 + Math.round((STEPS * column.codes[i]) / 65534);
  }
  mcsg.steps += n;
};
const paintOf = style => {
  if (style < PLAIN) return [palette[style % COLOURS], shapeOf(style)];
  return [style === PLAIN ? palette[GREY] : rampAt((style - PLAIN - 1) / STEPS), 0];
};

// A small picture of a point, drawn once for each style and size.
const sprites = new Map();
const sprite = (style, radius) => {
  const key = `${style} ${radius}`;
  if (!sprites.has(key)) {
    const canvas = document.createElement("canvas"), size = Math.ceil(2 * 1.4 * radius + 4), middle = size / 2;
    const ratio = devicePixelRatio || 1, brush = canvas.getContext("2d"), [colour, shape] = paintOf(style);
    canvas.width = canvas.height = Math.ceil(size * ratio);
    brush.scale(ratio, ratio);
    brush.beginPath();
    if (OUTLINES[shape]) OUTLINES[shape].forEach(([u, v]) => brush.lineTo(middle + u * radius, middle + v * radius));
    else brush.arc(middle, middle, radius, 0, 7);
    brush.closePath();
    brush.fillStyle = colour;
    brush.fill();
    if (radius > 2.4) {
      brush.strokeStyle = palette.edge;
      brush.lineWidth = .9;
      brush.stroke();
    }
    sprites.set(key, { canvas, size });
  }
  return sprites.get(key);
};

// Drawing ------------------------------------------------------------------------------------------------------------

const isLit = i => (!state.hits || state.hits[i]) && (state.lit < 0 || cut.clusterOf[i] === state.lit);

const prepared = id => {
  const canvas = $(id), ratio = devicePixelRatio || 1;
  const [w, h] = [view.room, view.height].map(size => Math.round(size * ratio));
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const brush = canvas.getContext("2d");
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.clearRect(0, 0, view.room, view.height);
  return brush;
};
const measureMap = () => {
  view.room = $("map").clientWidth;
  view.height = Math.round(Math.min(720, Math.max(340, view.room * .9)));
  view.edge = Math.min(44, view.room * .07);
  $("map").style.height = `${view.height}px`;
};
const drawPoints = () => {
  const brush = prepared("points"), base = n > 10000 ? 1.9 : n > 3000 ? 2.5 : n > 800 ? 3.3 : n > 200 ? 4.4 : 6;
  view.radius = Math.min(8, Math.round(10 * base * view.zoom ** .35 * (view.room < 500 ? .8 : 1)) / 10);
  const all = !state.hits && state.lit < 0;
  const put = i => {
    const x = xOf(i), y = yOf(i);
    if (x < -9 || y < -9 || x > view.room + 9 || y > view.height + 9) return;
    const { canvas, size } = sprite(styles.of[i], view.radius);
    brush.drawImage(canvas, x - size / 2, y - size / 2, size, size);
  };
  brush.globalAlpha = FAINT;
  if (!all) for (let i = 0; i < n; i++) if (!isLit(i)) put(i);
  brush.globalAlpha = n > 3000 && all ? .85 : 1;
  for (let i = 0; i < n; i++) if (all || isLit(i)) put(i);
  mcsg.steps += all ? n : 2 * n;
};

// Labels stand where most texts of their cluster are -----------------------------------------------------------------

const homes = { of: [] };
const findHomes = () => {
  const side = 48, cells = side * side, counts = new Uint32Array(nNodes * cells);
  const along = value => Math.min(side - 1, Math.floor(value * side));
  for (let i = 0; i < n; i++) counts[leafOf[i] * cells + along(ys[i]) * side + along(xs[i])]++;
  children.forEach(([a, b], t) => {
    for (let c = 0; c < cells; c++) counts[(nLeaves + t) * cells + c] = counts[a * cells + c] + counts[b * cells + c];
  });
  homes.of = Array.from({ length: nNodes }, (_, node) => {
    const own = counts.subarray(node * cells, (node + 1) * cells);
    const best = own.reduce((most, value, c) => (value > own[most] ? c : most), 0);
    return [(best % side + .5) / side, (Math.floor(best / side) + .5) / side];
  });
  mcsg.steps += n;
};
const placeOf = node => homes.of[node].map((value, axis) => {
  const room = axis ? view.height : view.room;
  return view.zoom * (view.edge + value * (room - 2 * view.edge)) + (axis ? view.y : view.x);
});
// Clusters, the largest first; and, the closer one looks, the parts that the tree divides them into, with the words
// that their clusters do not show.
const labelsWanted = () => {
  const few = view.room < 500, shown = new Map();
  const wanted = cut.nodes.filter(node => nodes.size[node] > 1 && data.words.nodes[node].length).slice(0, 80)
    .map(node => ({ node, words: named(node, few ? 1 : 2), part: false }));
  const finest = state.k * view.zoom ** 1.5, clusters = new Set([...cut.parts.values()].flat());
  for (const node of clusters) shown.set(node, new Set(wordsNamed(node, few ? 1 : 2)));
  for (let node = nNodes - 2; node >= 0; node--) {  // parents come before their children
    const above = shown.get(nodes.parent[node]);
    if (!above || clusters.has(node) || firstNumber(node) > finest) continue;
    const words = wordsNamed(node).filter(word => !above.has(word)).slice(0, few ? 1 : 2);
    shown.set(node, new Set([...above, ...words]));
    if (words.length && nodes.size[node] > 1) wanted.push({ node, words: words.join(", "), part: true });
  }
  return wanted;
};
const SHIFTS = [0, -24, 24, -48, 48].flatMap(dy => [0, -40, 40].map(dx => [dx, dy])), NEAR = 9;  // the near ones
const overlap = (p, q) => p[0] < q[2] && q[0] < p[2] && p[1] < q[3] && q[1] < p[3];
const drawLabels = () => {
  const taken = [[view.room - 52, 0, view.room, 118]], most = view.room < 500 ? 12 : 30, labels = [];
  for (const { node, words, part } of chosenColumn() ? [] : labelsWanted()) {
    if (labels.length === most) break;
    const half = widthOf(words, part ? "400 12px" : "600 12.5px") / 2 + (part ? 4 : 10), [x, y] = placeOf(node);
    if (x < 0 || y < 0 || x > view.room || y > view.height || 2 * half > view.room - 60) continue;
    const boxes = SHIFTS.slice(0, part ? NEAR : SHIFTS.length).map(([dx, dy]) => {
      const left = Math.min(view.room - 2 * half - 4, Math.max(4, x + dx - half));
      const top = Math.min(view.height - 25, Math.max(3, y + dy - 11));
      return [left, top, left + 2 * half, top + 22];
    });
    const box = boxes.find(candidate => !taken.some(other => overlap(candidate, other)));
    if (!box) continue;
    taken.push(box);
    const label = html("span", { class: `label ${part ? "part" : ""} ${colourOf(node)}` }, words);
    label.style.transform = `translate(${box[0]}px, ${box[1]}px)`;
    label.classList.toggle("faint", state.lit >= 0 && cut.ofLeaf[nodes.leaf[node]] !== state.lit);
    labels.push(label);
  }
  $("labels").replaceChildren(...labels);
};

const drawMarks = () => {
  const brush = prepared("marks"), { a, b, focus } = state, far = view.radius + 14;
  const badge = (letter, i, other) => {
    const x = xOf(i), y = yOf(i), angle = i === other ? -Math.PI / 2 : Math.atan2(y - yOf(other), x - xOf(other));
    const u = x + far * Math.cos(angle), v = y + far * Math.sin(angle);
    brush.beginPath();
    brush.arc(x, y, view.radius + 3, 0, 7);
    brush.stroke();
    brush.beginPath();
    brush.arc(u, v, 9.5, 0, 7);
    brush.fill();
    brush.fillStyle = palette.edge;
    brush.fillText(letter, u, v + .5);
    brush.fillStyle = palette.ink;
  };
  brush.strokeStyle = brush.fillStyle = palette.ink;
  brush.lineWidth = 1.8;
  brush.font = `700 11.5px ${getComputedStyle(document.body).fontFamily}`;
  brush.textAlign = "center";
  brush.textBaseline = "middle";
  if (a !== b) {
    brush.setLineDash([3, 4]);
    brush.beginPath();
    brush.moveTo(xOf(a), yOf(a));
    brush.lineTo(xOf(b), yOf(b));
    brush.stroke();
    brush.setLineDash([]);
    badge("B", b, a);
  }
  badge("A", a, b);
  if (focus >= 0) {
    brush.lineWidth = 3;
    brush.beginPath();
    brush.arc(xOf(focus), yOf(focus), view.radius + 7, 0, 7);
    brush.stroke();
  }
};
const drawMap = () => {
  drawPoints();
  drawLabels();
  drawMarks();
};
// An end of a scale: years have no comma, integers have all digits, and small numbers are not 0.
const endOfScale = value => {
  const digits = Number.isInteger(value) ? {} : { maximumSignificantDigits: 6 };
  return (value || 0).toLocaleString("en", { useGrouping: Math.abs(value) >= 1e4, ...digits });  // || 0: not -0
};
const drawLegend = () => {
  const column = chosenColumn(), box = $("legend");
  if (!column) return box.replaceChildren();
  const item = (mark, name, size) =>
    html("span", { class: "item" }, mark, name, html("span", { class: "soft" }, ` ${whole(size)}`));
  if (column.values) {
    const items = column.values.map((name, c) => item(swatch(c), name, column.counts[c]));
    if (column.others) items.push(item(swatch(0, `c${GREY}`), "(other values)", column.others));
    return box.replaceChildren(...items);
  }
  const step = (_, s) => svg("rect", { x: 3 * s, y: 0, width: 3.2, height: 10, fill: rampAt(s / 39) });
  const scale = picture(120, 10, ...Array.from({ length: 40 }, step));
  scale.setAttribute("class", "scale");
  box.replaceChildren(html("span", { class: "item" }, endOfScale(column.low), scale, endOfScale(column.high)));
};

// Zoom, pan, pointer and keys ----------------------------------------------------------------------------------------

const settle = () => {
  const within = (move, room) => Math.min(0, Math.max(room * (1 - view.zoom), move));
  view.x = within(view.x, view.room);
  view.y = within(view.y, view.height);
  $("map").classList.toggle("zoomed", view.zoom > 1);
};
let waiting = false;
const redrawSoon = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawMap();
  });
};
const zoomBy = (factor, x = view.room / 2, y = view.height / 2) => {
  const zoom = Math.min(MOST_ZOOM, Math.max(1, view.zoom * factor)), change = zoom / view.zoom;
  Object.assign(view, { zoom, x: x - (x - view.x) * change, y: y - (y - view.y) * change });
  settle();
  redrawSoon();
};
const showAll = () => {
  Object.assign(view, { zoom: 1, x: 0, y: 0 });
  settle();
  redrawSoon();
};
const placeIn = event => {
  const frame = $("map").getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
};
const showText = i => {
  const frame = $("map").getBoundingClientRect();
  showTip(frame.left + xOf(i), frame.top + yOf(i), excerpt(i), ofText(i));
};

// The text an arrow key moves to: ahead of the current one, and not far to the side.
const towards = key => {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const x = xOf(state.focus), y = yOf(state.focus);
  let best = state.focus, least = Infinity;
  for (let i = 0; i < n; i++) {
    const u = xOf(i) - x, v = yOf(i) - y, ahead = u * dx + v * dy, effort = ahead + 2.5 * Math.abs(u * dy - v * dx);
    if (ahead > .5 && effort < least && isLit(i)) [best, least] = [i, effort];
  }
  mcsg.steps += n;
  return best;
};
const moveFocus = i => {
  state.focus = i;
  if (i >= 0 && (xOf(i) < 0 || yOf(i) < 0 || xOf(i) > view.room || yOf(i) > view.height)) {
    view.x += view.room / 2 - xOf(i);
    view.y += view.height / 2 - yOf(i);
    settle();
    drawMap();
  }
  drawMarks();
  if (i < 0) return hideTip();
  showText(i);
  speak(texts[i].slice(0, LONG));
};
const onKey = event => {
  const arrow = event.key.startsWith("Arrow"), enter = event.key === "Enter" || event.key === " ";
  const zoom = { "+": () => zoomBy(1.5), "=": () => zoomBy(1.5), "-": () => zoomBy(1 / 1.5), 0: showAll }[event.key];
  if (event.target !== $("map") || event.ctrlKey || event.metaKey) return;
  if (arrow) moveFocus(state.focus < 0 ? state.a : towards(event.key));
  if (enter && state.focus >= 0) choose(state.focus);
  if (zoom) zoom();
  if (arrow || enter || zoom) event.preventDefault();
};
// One pointer pans, two pinch; a pointer that hardly moves chooses.
const listenToPointers = box => {
  const held = new Map();
  let moved = 0;
  box.addEventListener("pointerdown", event => {
    if (event.target.closest("button")) return;
    held.set(event.pointerId, placeIn(event));
    if (held.size === 1) moved = 0;
  });
  box.addEventListener("pointermove", event => {
    const now = placeIn(event), before = held.get(event.pointerId);
    if (!before) {
      const i = event.pointerType === "touch" || event.target.closest("button") ? -1 : textAt(...now);
      return i < 0 ? hideTip() : showText(i);
    }
    const step = Math.hypot(now[0] - before[0], now[1] - before[1]);
    moved += step;
    if (moved < 5) return;
    if (!box.hasPointerCapture(event.pointerId)) box.setPointerCapture(event.pointerId);
    hideTip();
    if (held.size === 2) {
      const [other] = [...held].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const apart = place => Math.hypot(place[0] - other[0], place[1] - other[1]);
      zoomBy(apart(now) / (apart(before) || 1), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else if (view.zoom > 1) {
      view.x += now[0] - before[0];
      view.y += now[1] - before[1];
      settle();
      redrawSoon();
    }
    held.set(event.pointerId, now);
  });
  const release = event => held.delete(event.pointerId);
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) box.addEventListener(name, release);
  box.addEventListener("pointerleave", hideTip);
  box.addEventListener("click", event => {
    if (event.target.closest("button") || moved >= 5) return;
    const i = textAt(...placeIn(event));
    if (i >= 0) choose(i);
  });
};
const listenToMap = () => {
  const box = $("map");
  listenToPointers(box);
  box.addEventListener("wheel", event => {
    if (view.zoom === 1 && event.deltaY > 0) return;  // the page scrolls on
    event.preventDefault();
    zoomBy(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 180), ...placeIn(event));
  }, { passive: false });
  box.addEventListener("focus", () => { if (box.matches(":focus-visible")) moveFocus(state.a); });
  box.addEventListener("blur", () => moveFocus(-1));
  box.addEventListener("keydown", onKey);
  $("zoom-in").addEventListener("click", () => zoomBy(1.6));
  $("zoom-out").addEventListener("click", () => zoomBy(1 / 1.6));
  $("zoom-all").addEventListener("click", showAll);
};
