// Clusters over a column of dates or categories: in each period, the share of its texts that belong to the cluster,
// with the 95 % interval of Wilson. All texts are counted.

const PANELS = 12, Z = 1.96;

const wilson = (k, m) => {
  const share = k / m, middle = (share + Z ** 2 / (2 * m)) / (1 + Z ** 2 / m);
  const half = (Z / (1 + Z ** 2 / m)) * Math.sqrt((share * (1 - share)) / m + Z ** 2 / (4 * m ** 2));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
};
const columnOver = () => data.periods.find(({ name }) => name === state.over) ?? data.periods[0];
// For each cluster and period: the number of texts, of how many in the period, and the share with its interval.
const sharesOver = ({ periods, counts }) => {
  const size = periods.length, inAll = new Array(size).fill(0), inEach = cut.nodes.map(() => new Array(size).fill(0));
  counts.forEach((value, at) => {
    inAll[at % size] += value;
    inEach[cut.ofLeaf[Math.floor(at / size)]][at % size] += value;
  });
  return inEach.map(own => own.map((k, p) => {
    const m = inAll[p], [low, high] = m ? wilson(k, m) : [0, 0];
    return { name: periods[p], k, m, share: m ? k / m : 0, low, high };
  }));
};
const toldOf = ({ name, k, m, low, high }) => {
  if (!m) return `${name}: no texts`;
  return `${name}: ${whole(k)} of ${count(m, "text")}, ${percent(k / m)} (${percent(low)} to ${percent(high)})`;
};
const exactPercent = share => `${share ? (100 * share).toFixed(share < .1 ? 1 : 0) : 0} %`;

// Where a share stands on a scale that ends with `most`: what is larger is drawn at its end.
const onScale = (share, most) => Math.min(share, most) / most;

// Dates from left to right, with the intervals as a band.
const lineOf = (shares, overall, most, room) => {
  const height = 92, bottom = height - 20, step = (room - 50) / Math.max(1, shares.length - 1);
  const x = p => 6 + p * step, y = share => bottom - (bottom - 8) * onScale(share, most);
  const known = shares.map((each, p) => [each, p]).filter(([{ m }]) => m);
  const path = (ends, value) => ends.map(([each, p]) => `${x(p).toFixed(1)} ${y(each[value]).toFixed(1)}`).join("L");
  const band = `M${path(known, "high")}L${path([...known].reverse(), "low")}Z`;
  const marks = known.map(([each, p]) => svg("g", {}, svg("title", {}, toldOf(each)),
    svg("rect", { class: "reach", x: x(p) - step / 2, y: 0, width: step, height: bottom }),
    svg("path", { class: "whisker", d: `M${x(p)} ${y(each.low)}V${y(each.high)}` }),
    svg("circle", { class: "mark-of", cx: x(p), cy: y(each.share), r: 2.4 })));
  return picture(room, height, svg("path", { class: "band", d: band }),
    svg("path", { class: "overall", d: `M6 ${y(overall)}H${room - 44}` }),
    svg("path", { class: "course", d: `M${path(known, "share")}` }), ...marks,
    svg("text", { class: "axis", x: room - 40, y: y(most) + 8 }, percent(most)),
    svg("text", { class: "axis", x: room - 40, y: bottom }, "0"),
    svg("text", { class: "axis", x: 0, y: height - 4 }, shares[0].name),
    svg("text", { class: "axis", x: room - 44, y: height - 4, "text-anchor": "end" }, shares.at(-1).name));
};
// Categories from top to bottom, with the intervals as lines.
const rowsOf = (shares, overall, most, room) => {
  const row = 17, left = Math.round(room * .42), height = shares.length * row + 4;
  const x = share => left + (room - left - 46) * onScale(share, most);
  const rows = shares.map((each, p) => {
    const y = p * row + 11, marks = each.m ? [
      svg("path", { class: "whisker", d: `M${x(each.low)} ${y}H${x(each.high)}` }),
      svg("circle", { class: "mark-of", cx: x(each.share), cy: y, r: 3 }),
    ] : [];
    return svg("g", {}, svg("title", {}, toldOf(each)),
      svg("rect", { class: "reach", x: 0, y: p * row, width: room, height: row }),
      svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, fitted(each.name, left - 10)), ...marks,
      svg("text", { class: "axis", x: room, y: y + 4, "text-anchor": "end" },
        each.m ? exactPercent(each.share) : "–"));
  });
  return picture(room, height, svg("path", { class: "overall", d: `M${x(overall)} 0V${height}` }), ...rows);
};
const toldOfColumn = ({ dates, unread, missing }) => [
  `Share of the texts of each ${dates ? "period" : "value"} that belong to a cluster, with 95 % intervals (Wilson).`,
  "The dashed line is the cluster’s share of all texts that are counted.",
  ...(unread ? [`${count(unread, "value")} could not be read as ${unread === 1 ? "a date" : "dates"}.`] : []),
  ...(missing ? [`${count(missing, "value")} ${missing === 1 ? "is" : "are"} missing.`] : []),
].join(" ");
const drawPeriods = () => {
  const column = columnOver();
  $("periods-section").hidden = (!column && !data.undated.length) || cut.nodes.length < 2;
  $("undated").textContent = data.undated.join(" ");
  $("over-title").hidden = !column;
  if ($("periods-section").hidden || !column) return;
  const every = sharesOver(column), counted = sumOf(every, own => sumOf(own, ({ k }) => k));
  const draw = column.dates ? lineOf : rowsOf, room = Math.min(340, $("periods").clientWidth);
  $("over").value = column.name;
  $("periods-hint").textContent = toldOfColumn(column);
  $("periods").replaceChildren(...every.slice(0, PANELS).map((own, c) => {
    const node = cut.nodes[c], overall = sumOf(own, ({ k }) => k) / (counted || 1);
    const large = own.filter(({ m }) => m > 19);  // intervals of few texts are wide: they may go beyond the scale
    const ends = large.length ? large.map(({ high }) => high) : own.map(({ share }) => share);
    const most = Math.max(.01, ...ends, overall), drawing = draw(own, overall, most, room);
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", `${named(node)} over ${column.name}: ${own.map(toldOf).join("; ")}`);
    return html("figure", { class: colourOf(node) },
      html("figcaption", {}, swatch(nodes.slot[node]), named(node)), drawing);
  }));
  const rest = `The ${PANELS} largest of ${every.length} clusters are shown.`;
  $("periods-rest").textContent = every.length > PANELS ? rest : "";
};
