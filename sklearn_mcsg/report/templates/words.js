// The words of texts with their vectors, and from them the cosine of two texts as a sum over pairs of words. Vectors
// have as many digits as the page has room for; cosines that Python has computed say how near those of the page are.

const ONE_BY_ONE = 400;  // words of a text that are compared one by one; the others are added up

const sumOf = (items, value) => items.reduce((sum, item) => sum + value(item), 0);

// Unpacking ----------------------------------------------------------------------------------------------------------

// The symmetric matrix of the inner product of points, from its diagonal and the correlations below it.
const unpackMetric = async ({ diagonal, triangle }) => {
  const square = new Float32Array(await inflate(diagonal)), size = square.length;
  const metric = new Float32Array(size * size), below = await unpackRows(triangle);
  for (let r = 0, at = 0; r < size; r++) {
    metric[r * size + r] = square[r];
    for (let c = 0; c < r; c++, at++) {
      metric[r * size + c] = metric[c * size + r] = below[at] * triangle.step * Math.sqrt(square[r] * square[c]);
    }
  }
  return metric;
};
// Long texts, of which the page has the most telling of the distinct words: how many there are, how often others occur,
// which come after all words of the vocabulary as the word `others`, with the mean of their vectors, and how far places
// are from their means. After these words come how much the variances of the features of the others differ.
const unpackCondensed = async ({ texts: long, scalars, counts, places }, sizes, nWords) => {
  const numbers = new Float32Array(await inflate(scalars)), every = new Uint32Array(await inflate(counts));
  const codes = new Uint8Array(await inflate(places)), found = new Map();
  let at = 0, others = nWords;
  new Int32Array(await inflate(long)).forEach((i, t) => {
    const [distinct, nOthers, place, within] = numbers.subarray(4 * t, 4 * t + 4), own = { at, end: at + sizes[i] };
    found.set(i, {
      distinct, nOthers, place, within, others,
      counts: every.subarray(own.at, own.end), places: codes.subarray(own.at, own.end),
    });
    at = own.end;
    others += nOthers > 0;
  });
  return found;
};
const unpackVocabulary = async (packed, order) => {
  const floats = async name => new Float32Array(await inflate(packed[name]));
  const positive = async ({ codes, most }) =>
    Float32Array.from(new Uint16Array(await inflate(codes)), code => (code * most) / 65535);
  const sizes = new Int16Array(await inflate(packed.sizes)), first = new Uint32Array(n);
  let end = 0;
  for (const i of order) {
    first[i] = end;
    end += sizes[i];
  }
  mcsg.steps += n;
  const mean = await floats("mean"), words = await inflateJson(packed.words);
  return {
    ...packed, sizes, first, mean, d: mean.length, known: packed.vectors.columns,
    words, condensed: await unpackCondensed(packed.condensed, sizes, words.length),
    tokens: new (packed.wide ? Uint32Array : Uint16Array)(await inflate(packed.tokens)),
    vectors: await unpackRows(packed.vectors),
    weights: await positive(packed.weights), factors: await positive(packed.factors),
    missed: await positive(packed.missed), variance: await floats("variance"),
    metric: await unpackMetric(packed.metric),
    slope: await floats("slope"), centre: await floats("centre"), spread: await floats("spread"),
  };
};
const tokensOf = i => {
  const { first, sizes, tokens } = vocabulary;
  return tokens.subarray(first[i], first[i] + sizes[i]);
};
// The row of a word: whole numbers times its factor. In its vector they are standard deviations from the mean.
const rowOf = word => {
  const { d, known, vectors, factors } = vocabulary, row = new Float64Array(d);
  for (let k = 0; k < Math.min(d, known); k++) row[k] = vectors[word * known + k] * factors[word];
  return row;
};
const vectorOf = word => rowOf(word).map((value, k) =>
  vocabulary.mean[k] + value * Math.sqrt(vocabulary.variance[k]));

// Coordinates of texts -----------------------------------------------------------------------------------------------

// The words of a text with their weights and places, from -1 to 1, and the number of each among the distinct words. The
// mean of other words has the number after the last.
const wordsIn = i => {
  const { weights } = vocabulary, own = tokensOf(i), numbers = new Map(), vectors = new Map();
  for (const word of own) {
    if (numbers.has(word)) continue;
    numbers.set(word, numbers.size);
    vectors.set(word, vectorOf(word));
  }
  const long = vocabulary.condensed.get(i);
  if (long) {
    const found = Array.from(own, (word, number) => ({
      word, number, vector: vectors.get(word), weight: weights[word] * long.counts[number],
      place: long.places[number] / 127.5 - 1,
    }));
    const { others: word, nOthers, place } = long;
    return nOthers ? [...found, {
      word, number: own.length, vector: vectorOf(word), weight: weights[word] * nOthers, place,
      spread: rowOf(word + weights.length - vocabulary.words.length),
    }] : found;
  }
  return Array.from(own, (word, t) => ({
    word, number: numbers.get(word), weight: weights[word], vector: vectors.get(word),
    place: (2 * t + 1) / own.length - 1,
  }));
};
// The model of a text, as GroupEmbedding has it, and its coordinates. A group is a line; without an order the slope of
// the corpus and the coordinates of order are 0, and places do not matter. What the digits of the vectors miss is added
// to the variance of the text.
const modelOf = i => {
  const { d, mean, slope, place, reach, variance, centre, noise, prior, spread, order, missed } = vocabulary;
  const words = wordsIn(i), sum = sumOf(words, ({ weight }) => weight), all = sum + prior;
  const { within = 0, distinct = 0 } = vocabulary.condensed.get(i) ?? {};
  const nOwn = distinct ? vocabulary.sizes[i] : Infinity;
  if (!sum) return null;
  const middle = (sumOf(words, word => word.weight * word.place) + prior * place) / all, shift = place - middle;
  const at = words.map(word => word.place - middle);
  const span = sumOf(words, ({ weight, place: own }) => weight * (own - middle) ** 2)
    + within + prior * (reach + shift ** 2);
  const perSpan = span > 1e-20 * all ? 1 / span : 0;  // places that do not vary have no slope
  const features = [], whole = new Float64Array(3 * d);
  for (let k = 0; k < d; k++) {
    const dev = Math.sqrt(variance[k]), unit = (order * Math.sqrt(reach)) / dev;
    let mu = prior * mean[k];
    for (const { vector, weight } of words) mu += weight * vector[k];
    mu /= all;
    const gap = mu - mean[k] + slope[k] * shift;  // between the lines of text and corpus, in the middle of the text
    let scatter = prior * (variance[k] - noise + gap ** 2) + within * slope[k] ** 2;
    let cross = -prior * shift * gap - within * slope[k];
    for (let t = 0; t < words.length; t++) {
      const { word, vector, weight, spread: more } = words[t], off = vector[k] - mu - slope[k] * at[t];
      scatter += weight * (off ** 2 + (more ? missed[word] + more[k] : missed[word]) * variance[k]);
      cross += weight * at[t] * off;
    }
    const own = scatter / all + noise, scale = (spread[k] * Math.log(own / variance[k])) / Math.SQRT2;
    whole[k] = gap / dev - centre[k];
    whole[d + k] = scale - centre[d + k];
    whole[2 * d + k] = unit * (perSpan ? perSpan * cross : -slope[k]) - centre[2 * d + k];
    features.push({ dev, unit, mu, gap, own, scale });
  }
  return { words, sum, all, at, perSpan, features, distinct, nOwn, ...measured(whole) };
};
// Coordinates that are left out at the end are 0.
const dot = (p, q) => {
  const size = Math.min(p.length, q.length);
  let sum = 0;
  for (let k = 0; k < size; k++) sum += p[k] * q[k];
  return sum;
};
// Coordinates times the matrix of the inner product.
const times = coordinates => {
  const { metric } = vocabulary, size = Math.sqrt(metric.length), image = new Float64Array(size);
  for (let r = 0; r < size; r++) {
    const value = coordinates[r];
    if (value) for (let c = 0; c < size; c++) image[c] += value * metric[r * size + c];
  }
  return image;
};
// Coordinates with their image and the length of their point.
const measured = whole => {
  const image = times(whole);
  return { whole, image, length: Math.sqrt(Math.max(0, dot(whole, image))) || 1 };
};
const cosineOf = (p, q) => Math.max(-1, Math.min(1, dot(p.image, q.whole) / (p.length * q.length)));

// The models of the texts that were compared last: one text is compared with many.
const recent = new Map();
const modelKept = i => {
  const model = recent.get(i) ?? modelOf(i);
  recent.delete(i);
  recent.set(i, model);
  if (recent.size > 2 * CANDIDATES) recent.delete(recent.keys().next().value);
  return model;
};

// The parts of a text's words in its coordinates, as GroupEmbedding.explain computes them: one row per distinct word,
// and one for those of which the page has the mean.
const partsOf = ({ words, sum, all, at, perSpan, features, nOwn, whole }) => {
  const { d, variance, slope, noise, missed } = vocabulary, names = [], rows = [], weights = [];
  for (const { word, number, weight } of words) {
    names[number] = number < nOwn ? vocabulary.words[word] : "";
    rows[number] ||= new Float64Array(3 * d);
    weights[number] = (weights[number] || 0) + weight;
  }
  features.forEach(({ dev, unit, mu, gap, own, scale }, k) => {
    const rest = [whole[k], whole[d + k], whole[2 * d + k]];
    words.forEach(({ word, vector, number, weight, spread: more }, t) => {
      const away = vector[k] - mu, width = (more ? missed[word] + more[k] : missed[word]) * variance[k];
      const square = (away - slope[k] * at[t]) ** 2 + width;
      [
        (weight * (away + gap)) / (all * dev),
        ((weight * (square + noise)) / (all * own)) * scale,
        unit * perSpan * weight * at[t] * away,
      ].forEach((part, kind) => {
        rows[number][kind * d + k] += part;
        rest[kind] -= part;
      });
    });
    rows.forEach((row, w) => rest.forEach((value, kind) => { row[kind * d + k] += (weights[w] / sum) * value; }));
  });
  return { names, rows };
};

// Cosines and explanations -------------------------------------------------------------------------------------------

// The cosine of two texts: of their words, or of their points if these are not known.
const cosine = (i, j) => {
  const [left, right] = vocabulary ? [modelKept(i), modelKept(j)] : [];
  return left && right ? cosineOf(left, right) : cosineOfPoints(i, j);
};
// The words of a text that are compared one by one, and the sum of the parts of all others, if there are others.
const oneByOne = ({ names, rows }, { distinct, nOwn }, sums) => {
  const most = largest(sums.map(Math.abs), ONE_BY_ONE, w => w < nOwn).sort((p, q) => p - q), chosen = new Set(most);
  const others = (distinct || names.length) - most.length;
  if (!others) return { names, rows, others };
  const rest = new Float64Array(rows[0].length);
  rows.forEach((row, w) => { if (!chosen.has(w)) row.forEach((value, k) => { rest[k] += value; }); });
  return {
    names: [...most.map(w => names[w]), `${whole(others)} others`], rows: [...most.map(w => rows[w]), rest], others,
  };
};
// The matrix of two texts, whose sum is their cosine; the sum of each word of both; how many words are added up in the
// last row and column; and the cosine without the order of words, if it counts; or the sentence that says why there is
// none.
const explain = (i, j) => {
  if (!vocabulary) return { why: "Pairs of words are shown for the likelihoods diag and trend only." };
  const [left, right] = [modelKept(i), modelKept(j)];
  if (!left || !right) {
    return { why: `Text ${left ? "B" : "A"} has no words to compare.` };
  }
  const parts = [partsOf(left), partsOf(right)], scale = left.length * right.length;
  const sums = parts.map(({ rows: all }, side) => all.map(row => dot(row, [right, left][side].image) / scale));
  const [rows, columns] = parts.map((part, side) => oneByOne(part, [left, right][side], sums[side]));
  const matrix = rows.rows.map(times).map(p => columns.rows.map(q => dot(p, q) / scale));
  const withoutOrder = ({ whole }) => measured(whole.slice(0, 2 * vocabulary.d));
  const unordered = vocabulary.ordered ? cosineOf(withoutOrder(left), withoutOrder(right)) : null;
  return {
    rows: rows.names, columns: columns.names, matrix, unordered, words: parts.map(({ names }) => names), sums,
    others: [rows.others, columns.others],
  };
};
// How near cosines are to those that Python has computed: the error that 95 % of the checked pairs do not exceed.
let errorKnown = null;
const errorOfCosines = () => {
  if (errorKnown === null) {
    const errors = data.checks.map(([i, j, exact]) => Math.abs(cosine(i, j) - exact)).sort((u, v) => u - v);
    errorKnown = errors.length ? errors[Math.ceil(.95 * errors.length) - 1] : 0;
  }
  return errorKnown;
};
