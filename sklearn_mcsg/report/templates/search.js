// The search: texts that have all words and phrases of a query, in the text or in a column that is shown, best first.

const SATURATION = 1.2, WHOLE = 2;  // of BM25; a whole word counts twice as much as a part of one

// Words of a query, and phrases between quotes.
const termsOf = query => [...query.toLowerCase().matchAll(/["\u201c\u201d]([^"\u201c\u201d]*)["\u201c\u201d]?|(\S+)/g)]
  .map(([, phrase, word]) => (phrase ?? word.replaceAll(/["\u201c\u201d]/g, "")).trim().replaceAll(/\s+/g, " "))
  .filter(Boolean);
// What is searched of each text: the text, then its columns.
let folded = null;
const foldTexts = () => {
  const columns = columnsShown(), fold = text => text.toLowerCase().replaceAll(/\s+/g, " ");
  folded = texts.map((text, i) => [text, ...columns.map(({ cells }) => cells[i])].map(fold).join("\n"));
  folded.mean = sumOf(folded, text => text.length) / n;
};
// How often a term occurs, where whole words count more.
const occurrences = (text, term) => {
  let sum = 0;
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + term.length)) {
    const whole = !LETTER.test(text[at - 1] || "") && !LETTER.test(text[at + term.length] || "");
    sum += whole ? WHOLE : 1;
  }
  return sum;
};
// Texts with all terms, by the sum over terms of how rare a term is times how often it occurs for the text's length.
const ranked = terms => {
  const counts = terms.map(term => Float32Array.from(folded, text => occurrences(text, term)));
  const rarity = counts.map(values => Math.log(1 + n / (1 + values.filter(Boolean).length)));
  const found = [], scores = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    if (!counts.every(values => values[i])) continue;
    const length = SATURATION * (.25 + (.75 * folded[i].length) / folded.mean);
    scores[i] = counts.reduce((sum, values, t) => sum + (rarity[t] * values[i]) / (values[i] + length), 0);
    found.push(i);
  }
  mcsg.steps += (terms.length + 1) * n;
  return found.sort((i, j) => scores[j] - scores[i] || i - j);
};
const search = query => {
  const terms = termsOf(query);
  let found = [];
  Object.assign(state, { query, hits: null });
  if (terms.length) {
    if (!folded) foldTexts();
    found = ranked(terms);
    state.hits = new Uint8Array(n);
    found.forEach(i => { state.hits[i] = 1; });
  }
  $("matches").textContent = state.hits ? `${whole(found.length)} of ${count(n, "text")}` : "";
  $("found-section").hidden = !state.hits;
  const nothing = `No text has ${terms.map(term => `“${term}”`).join(" and ")}.`;
  $("found-hint").textContent = found.length ? "Best first. Lit on the map." : nothing;
  $("found").parentElement.hidden = !found.length;
  fillList($("found"), $("more-found"), found);
  $("found").parentElement.scrollTop = 0;
  redrawSoon();
};
