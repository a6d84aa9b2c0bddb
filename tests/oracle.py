"""The slow, obvious truth that the library is tested against: concatenate, fit, subtract.

Nothing here is shared with the library. The union of two groups is a concatenation, every criterion is
computed from the vectors, and the TIC penalty is tr(I J^-1) by definition, from scores and Hessians.

Throughout, ``x`` is (n, d), ``c`` the (n,) weights, and ``eps`` (reg_covar) the variance of the observation
noise: every vector stands for N(x, eps I), or for von Mises-Fisher(u, 1/eps) on the sphere. The vectors of "trend" have
their place in the group as a last column. Degenerate
inputs (a covariance that is singular at eps = 0, identical directions at eps = 0) are not defined here.
"""

import itertools
import pickle
import threading
import zlib

import mpmath as mp
import numpy as np
from scipy.special import gammaln, multigammaln

DIGITS = 50
_PRECISION = threading.Lock()  # of mpmath, which is one for all threads


def n_parameters(name, d):
    """Number of free parameters of the model in ``d`` dimensions."""
    return {"spherical": d + 1, "diag": 2 * d, "full": d + d * (d + 1) // 2, "vmf": d, "trend": 3 * d}[name]


def observed(name, groups, i):
    """Vectors and weights of one group; those of "trend" have their places as a last column."""
    rows = slice(groups.offsets[i], groups.offsets[i + 1])
    x, c = groups[i].astype(float), np.ones(len(groups[i])) if groups.weights is None else groups.weights[rows]
    return (np.column_stack([x, places_of(groups)[rows]]) if name == "trend" else x), c


def places_of(groups):
    """The positions of vectors, or their order from -1 to 1."""
    if groups.positions is not None:
        return groups.positions
    return np.concatenate([np.zeros(0), *(2 * (np.arange(n) + 0.5) / n - 1 for n in groups.sizes)])


# Maximised log-likelihoods.


def log_likelihood(name, x, c, eps):
    """Log density at the estimate, in expectation over the noise, summed over the weighted vectors."""
    if name == "vmf":
        return _log_likelihood_vmf(x, c, eps)
    residual = residual_of_line(x, c) if name == "trend" else x - np.average(x, axis=0, weights=c)
    if name == "full":
        variance, axes = _principal_axes(x, c, eps)
        residual = residual @ axes.T
    square = residual**2 + eps
    if name in ("diag", "trend"):
        variance = np.average(square, axis=0, weights=c)
    if name == "spherical":
        variance = np.average(square.mean(axis=1), weights=c)
    return c @ (-0.5 * (np.log(2 * np.pi * variance) + square / variance)).sum(axis=1)


def residual_of_line(x, c):
    """Deviations of each feature from its line of least squares along the places, which are the last column."""
    x, place = x[:, :-1], x[:, -1]
    x = x - np.average(x, axis=0, weights=c)
    place = place - np.average(place, weights=c)
    if np.ptp(place) < 1e-10:
        return x
    root = np.sqrt(c)[:, None]
    line = np.column_stack([np.ones(len(place)), place])
    return x - line @ np.linalg.lstsq(line * root, x * root, rcond=None)[0]


def _principal_axes(x, c, eps):
    """Eigenvalues and eigenvectors (rows) of the covariance S/n + eps I, by SVD of its root."""
    centred = np.sqrt(c / c.sum())[:, None] * (x - np.average(x, axis=0, weights=c))
    root = np.vstack([centred, np.sqrt(eps) * np.eye(x.shape[1])])
    _, singular, axes = np.linalg.svd(root, full_matrices=False)
    return singular**2, axes


# The von Mises-Fisher distribution in mpmath: every function but the first is called inside mp.workdps.


def _log_likelihood_vmf(x, c, eps):
    """The density is with respect to the surface measure of the sphere."""
    d = x.shape[1]
    with _PRECISION, mp.workdps(DIGITS):
        length = mp.norm(_unit_vectors(x).T * _share(c)) * _noise_length(d, eps)
        kappa = _solve_kappa(d, length)
        return float(mp.fsum(c) * (kappa * length - _log_normaliser(d, kappa)))


def _unit_vectors(x):
    rows = [mp.matrix(row.tolist()) for row in x]
    return mp.matrix([list(row / mp.norm(row)) for row in rows])


def _share(c):
    """The weights as a column that sums to one."""
    column = mp.matrix(c.tolist())
    return column / mp.fsum(column)


def _resultant_length(d, kappa):
    """A_d(kappa), the length of the mean of the distribution."""
    return mp.besseli(mp.mpf(d) / 2, kappa) / mp.besseli(mp.mpf(d) / 2 - 1, kappa)


def _noise_length(d, eps):
    """Length of the mean of the noise around a unit vector."""
    return _resultant_length(d, 1 / mp.mpf(eps)) if eps > 0 else mp.mpf(1)


def _solve_kappa(d, length):
    """Root of A_d(kappa) = length, from Banerjee's approximation."""
    if length < mp.mpf(10) ** -30:
        return mp.mpf(0)
    start = length * (d - length**2) / (1 - length**2)
    return mp.findroot(lambda kappa: _resultant_length(d, kappa) - length, (start, start * mp.mpf("1.001")))


def _log_normaliser(d, kappa):
    """ln Z(kappa), the logarithm of the integral of exp(kappa mu.v) over the sphere."""
    half = mp.mpf(d) / 2
    if kappa == 0:
        return mp.log(2 * mp.pi**half / mp.gamma(half))
    return half * mp.log(2 * mp.pi) + mp.log(mp.besseli(half - 1, kappa)) - (half - 1) * mp.log(kappa)


def _second_moment(d, kappa, length, uu):
    """E v v^T of a von Mises-Fisher distribution around u, from ``uu`` = u u^T (or a mean of those)."""
    spread = length / kappa if kappa > 0 else mp.mpf(1) / d
    return spread * mp.eye(d) + (1 - d * spread) * uu


# TIC penalties by definition.


def tic_penalty(name, x, c, eps):
    """tr(I J^-1): I = mean outer product of the score, J = minus the mean Hessian, at the estimate.

    The noise is explicit: every vector becomes a set of weighted points with the moments of N(x, eps I).
    "diag" and "spherical" are practical at d = 300; "full" needs 2^d points a vector (d <= 10, fewer if
    there are many vectors) and "vmf" inverts a d x d matrix in mpmath (d <= 50).
    """
    if name == "vmf":
        return _tic_vmf(x, c, eps)
    if name == "trend":
        return _tic_trend(x, c, eps)
    offsets, weights = CUBATURES[name](x.shape[1])
    points = (x[:, None, :] + np.sqrt(eps) * offsets).reshape(-1, x.shape[1])
    c = np.outer(c, weights).ravel()
    if name == "diag":  # separate parameters a feature: J is block diagonal
        return sum(_tic_spherical(feature[:, None], c) for feature in points.T)
    return _tic_spherical(points, c) if name == "spherical" else _tic_full(points, c)


def marginal_cubature(d):
    """Three points whose *marginals* have the moments of N(0, 1) to order 5 (Gauss-Hermite)."""
    return np.sqrt(3) * np.array([-1.0, 0.0, 1.0])[:, None] * np.ones(d), np.array([1, 4, 1]) / 6


def radial_cubature(d):
    """2d + 1 points z with the mean and covariance of N(0, I), E z |z|^2 = 0 and E |z|^4 = d (d + 2).

    That is all that |x + z|^2 and its square depend on, for any x, hence all that "spherical" looks at.
    """
    axes = np.sqrt(d + 2) * np.eye(d)
    return np.vstack([np.zeros(d), axes, -axes]), np.r_[2.0, np.full(2 * d, 0.5)] / (d + 2)


def joint_cubature(d):
    """2^d + 2d + 1 points with all joint moments of N(0, I) to order 5.

    The radius is 0 or sqrt(d + 2), and the directions are the axes and the corners of a cube.
    """
    axes = np.sqrt(d + 2) * np.eye(d)
    corners = np.sqrt((d + 2) / d) * np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    on_corners = (d / (d + 2)) ** 2 / 2**d
    weights = np.r_[2 / (d + 2), np.full(2 * d, (d + 2) ** -2.0), np.full(2**d, on_corners)]
    return np.vstack([np.zeros(d), axes, -axes, corners]), weights


CUBATURES = {"diag": marginal_cubature, "spherical": radial_cubature, "full": joint_cubature}


def _trace(score, hessian, c):
    """tr(I J^-1) from the scores (n, k) and the mean Hessian (k, k)."""
    outer = (score.T * c) @ score / c.sum()
    return np.trace(np.linalg.solve(-hessian, outer))


def _tic_spherical(x, c):
    """Parameters: the mean and the variance v of log p = -(d/2) ln(2 pi v) - |x - mean|^2 / (2 v)."""
    d = x.shape[1]
    residual = x - np.average(x, axis=0, weights=c)
    square = (residual**2).sum(axis=1)
    v = np.average(square, weights=c) / d
    score = np.column_stack([residual / v, -d / (2 * v) + square / (2 * v**2)])
    hessian = np.diag(np.full(d + 1, -1 / v))
    hessian[:d, d] = hessian[d, :d] = -np.average(residual, axis=0, weights=c) / v**2
    hessian[d, d] = d / (2 * v**2) - np.average(square, weights=c) / v**3
    return _trace(score, hessian, c)


def _tic_trend(x, c, eps):
    """Parameters of each feature: value and slope of the line, and the variance v.

    The noise is symmetric and leaves the line as it is. Places that do not vary count as if they did at random,
    independently of the vectors.
    """
    offsets, noise = marginal_cubature(1)
    residual, place = residual_of_line(x, c), x[:, -1] - np.average(x[:, -1], weights=c)
    points = (residual[:, None, :] + np.sqrt(eps) * offsets).reshape(-1, residual.shape[1])
    weights, places = np.outer(c, noise).ravel(), np.repeat(place, len(noise))
    if np.ptp(place) < 1e-10:
        points, weights = np.concatenate([points, points]), np.concatenate([weights, weights])
        places = np.repeat([-1.0, 1.0], len(weights) // 2)
    return sum(_tic_line(feature, places, weights) for feature in points.T)


def _tic_line(r, place, c):
    """One feature; log p = -ln(2 pi v) / 2 - r^2 / (2 v), where r falls with the value and the slope."""
    v = np.average(r**2, weights=c)
    score = np.column_stack([r / v, r * place / v, -1 / (2 * v) + r**2 / (2 * v**2)])
    line = np.column_stack([np.ones_like(place), place])
    hessian = np.zeros((3, 3))
    hessian[:2, :2] = -(line.T * c) @ line / c.sum() / v
    hessian[:2, 2] = hessian[2, :2] = -(c * r) @ line / c.sum() / v**2
    hessian[2, 2] = 1 / (2 * v**2) - np.average(r**2, weights=c) / v**3
    return _trace(score, hessian, c)


def _tic_full(x, c):
    """Parameters: the mean and the upper triangle of the precision P, in coordinates z whitened by the fit.

    There the estimate is mean 0, P = I, and log p = (ln det P - (z - mean)^T P (z - mean)) / 2 + const has
    the Hessians -P for the mean, -tr(P^-1 E P^-1 F) / 2 for the entries E, F of P, and mean zero across.
    """
    d = x.shape[1]
    eigenvalues, axes = _principal_axes(x, c, 0.0)
    z = (x - np.average(x, axis=0, weights=c)) @ axes.T / np.sqrt(eigenvalues)
    row, column = np.triu_indices(d)
    occurrences = np.where(row == column, 1.0, 2.0)
    score = np.hstack([z, 0.5 * occurrences * ((row == column) - z[:, row] * z[:, column])])
    return _trace(score, -np.diag(np.r_[np.ones(d), 0.5 * occurrences]), c)


def _tic_vmf(x, c, eps):
    """Parameter: theta = kappa mu of the exponential family exp(theta.v) / Z(|theta|).

    The score is v - E v, and minus the Hessian is the covariance of the fitted model.
    """
    d = x.shape[1]
    with _PRECISION, mp.workdps(DIGITS):
        unit, share = _unit_vectors(x), _share(c)
        noise = _noise_length(d, eps)
        mean = noise * (unit.T * share)
        moment = unit.T * mp.diag(list(share)) * unit
        if eps > 0:
            moment = _second_moment(d, 1 / mp.mpf(eps), noise, moment)
        length = mp.norm(mean)
        kappa = _solve_kappa(d, length)
        direction = mean / length if kappa > 0 else mp.zeros(d, 1)
        model = _second_moment(d, kappa, length, direction * direction.T)
        product = (moment - mean * mean.T) * mp.inverse(model - mean * mean.T)
        return float(mp.fsum(product[i, i] for i in range(d)))


# Evidence under the conjugate priors.


def log_evidence(name, x, c, prior):
    """Log marginal likelihood: Normal-Gamma for "diag" and "spherical", Normal-Wishart for "full"."""
    n, d = c.sum(), x.shape[1]
    if name == "trend":
        columns = [np.broadcast_to(prior[key], d - 1) for key in ("mean", "slope", "beta")]
        features = zip(x[:, :-1].T, *columns, strict=True)
        weights = prior["kappa"], prior["kappa_slope"]
        return sum(_normal_gamma_line(f, x[:, -1], c, (m, b), weights, prior["alpha"], r) for f, m, b, r in features)
    if name == "diag":
        rates = np.broadcast_to(prior["beta"], d)
        features = zip(x.T, prior["mean"], rates, strict=True)
        return sum(_normal_gamma(f[:, None], c, m, prior["kappa"], prior["alpha"], b) for f, m, b in features)
    if name == "spherical":
        return _normal_gamma(x, c, prior["mean"], prior["kappa"], prior["alpha"], prior["beta"])
    mean = np.average(x, axis=0, weights=c)
    shift = mean - prior["mean"]
    kappa, dof = prior["kappa"] + n, prior["dof"] + n
    scatter = prior["scatter"] + ((x - mean).T * c) @ (x - mean)
    scatter = scatter + prior["kappa"] * n / kappa * np.outer(shift, shift)
    return (
        multigammaln(dof / 2, d)
        - multigammaln(prior["dof"] / 2, d)
        + prior["dof"] / 2 * np.linalg.slogdet(prior["scatter"])[1]
        - dof / 2 * np.linalg.slogdet(scatter)[1]
        + d / 2 * np.log(prior["kappa"] / kappa)
        - n * d / 2 * np.log(np.pi)
    )


def _normal_gamma(x, c, mean0, kappa0, alpha0, beta0):
    """x ~ N(mu, I/lambda), mu | lambda ~ N(mean0, I/(kappa0 lambda)), lambda ~ Gamma(alpha0, rate beta0)."""
    n, d = c.sum(), x.shape[1]
    mean = np.average(x, axis=0, weights=c)
    kappa, alpha = kappa0 + n, alpha0 + n * d / 2
    beta = beta0 + 0.5 * (c @ (x - mean) ** 2).sum()
    beta = beta + 0.5 * kappa0 * n / kappa * ((mean - mean0) ** 2).sum()
    return (
        gammaln(alpha)
        - gammaln(alpha0)
        + alpha0 * np.log(beta0)
        - alpha * np.log(beta)
        + d / 2 * np.log(kappa0 / kappa)
        - n * d / 2 * np.log(2 * np.pi)
    )


def _normal_gamma_line(y, place, c, line0, weights0, alpha0, beta0):
    """y ~ N(value + slope place, 1/lambda), with normal value and slope: Bayesian regression by matrices."""
    design, line0, precision0 = np.column_stack([np.ones_like(place), place]), np.array(line0), np.diag(weights0)
    precision = precision0 + (design.T * c) @ design
    line = np.linalg.solve(precision, precision0 @ line0 + (design.T * c) @ y)
    residual, shift = y - design @ line, line - line0
    alpha, beta = alpha0 + c.sum() / 2, beta0 + 0.5 * (c @ residual**2 + shift @ precision0 @ shift)
    return (
        gammaln(alpha)
        - gammaln(alpha0)
        + alpha0 * np.log(beta0)
        - alpha * np.log(beta)
        + 0.5 * (np.linalg.slogdet(precision0)[1] - np.linalg.slogdet(precision)[1])
        - c.sum() / 2 * np.log(2 * np.pi)
    )


# Criteria and comparisons.


_known = {}


def information(name, criterion, x, c, eps, prior=None, penalty_scale=1.0):
    """-2 (L - penalty_scale * penalty); lower fits better. "bayes" uses neither ``eps`` nor a penalty.

    Tests ask for the same groups again and again, so answers are remembered.
    """
    question = name, criterion, x.shape, x.tobytes(), c.tobytes(), eps, pickle.dumps(prior), penalty_scale
    if question not in _known:
        _known[question] = _information(name, criterion, x, c, eps, prior, penalty_scale)
    return _known[question]


def _information(name, criterion, x, c, eps, prior, penalty_scale):
    if criterion == "bayes":
        return -2 * log_evidence(name, x, c, prior)
    k = n_parameters(name, x.shape[1] - (name == "trend"))
    penalties = {
        "aic": lambda: k,
        "tic": lambda: tic_penalty(name, x, c, eps),
        "bic": lambda: 0.5 * k * np.log(c.sum()),
    }
    return -2 * (log_likelihood(name, x, c, eps) - penalty_scale * penalties[criterion]())


def compare(name, criterion, a, b, eps, prior=None, penalty_scale=1.0):
    """The "similarity", "distance" and "divergence" of the groups a = (x, c) and b = (y, e)."""

    def ic(group):
        return information(name, criterion, *group, eps, prior, penalty_scale)

    def similarity(one, other):
        union = tuple(np.concatenate(parts) for parts in zip(one, other, strict=True))
        return ic(one) + ic(other) - ic(union)

    n, m = a[1].sum(), b[1].sum()
    value = similarity(a, b)
    distance = max(0.0, 0.5 * (similarity(a, a) + similarity(b, b)) - value)
    return {"similarity": value, "distance": distance, "divergence": distance * (n + m) / (n * m)}


def pseudo_vectors(name, corpus_x, corpus_c, strength):
    """Vectors of total weight ``strength`` with the moments of the Gaussian ``name`` fitted to the corpus.

    Returns (points, weights). The moments agree to order 4 as far as the likelihood looks at them, so
    concatenating these points to a group is what ``prior_strength`` means, for every criterion but "bayes".
    """
    if name == "trend":  # at the places of the corpus, around its line
        residual = residual_of_line(corpus_x, corpus_c)
        offsets, noise = marginal_cubature(1)
        points = np.sqrt(np.average(residual**2, axis=0, weights=corpus_c)) * offsets
        points = np.concatenate([corpus_x[:, :-1] - residual + point for point in points])
        points = np.column_stack([points, np.tile(corpus_x[:, -1], len(noise))])
        return points, strength * np.outer(noise, corpus_c / corpus_c.sum()).ravel()
    mean = np.average(corpus_x, axis=0, weights=corpus_c)
    variance = np.average((corpus_x - mean) ** 2, axis=0, weights=corpus_c)
    points, weights = CUBATURES[name](corpus_x.shape[1])
    if name == "diag":
        points = points * np.sqrt(variance)
    elif name == "spherical":
        points = points * np.sqrt(variance.mean())
    else:
        eigenvalues, axes = _principal_axes(corpus_x, corpus_c, 0.0)
        points = points * np.sqrt(eigenvalues) @ axes
    return mean + points, strength * weights


def centered_matrix(x_to_references, y_to_references, references, x_to_y):
    """1 - G_AB / sqrt(G_AA G_BB) from divergences to, among and beside the reference groups.

    The means run over all references and over all ordered pairs of them, the diagonal included. Where G_AA
    or G_BB is not positive the value is not defined (nan); elsewhere it is clipped to [0, 2].
    """
    g = references.mean()
    result = np.full(x_to_y.shape, np.nan)
    for i, row in enumerate(x_to_references):
        for j, column in enumerate(y_to_references):
            g_ab = -0.5 * (x_to_y[i, j] - row.mean() - column.mean() + g)
            g_aa = -0.5 * (0.0 - 2 * row.mean() + g)
            g_bb = -0.5 * (0.0 - 2 * column.mean() + g)
            if g_aa > 0 and g_bb > 0:
                result[i, j] = np.clip(1 - g_ab / np.sqrt(g_aa * g_bb), 0.0, 2.0)
    return result


# Points of "trend", with and without the order of the vectors.


def order_of_cosine(groups, i, j, eps, strength, spread, order, whiten):
    """Cosine of two groups, and what of it is due to order: the rest has the corpus' average slopes in both groups."""
    every = [observed("trend", groups, k) for k in range(len(groups))]
    corpus, weights = _joined(*every)
    extra = pseudo_vectors("trend", corpus, weights, strength)
    line = _line(corpus, weights)
    v0 = np.average((corpus[:, :-1] - line(corpus[:, -1])) ** 2, axis=0, weights=weights) + eps
    reach = np.average((corpus[:, -1] - np.average(corpus[:, -1], weights=weights)) ** 2, weights=weights)
    points = []
    for own in every:
        x, c = _joined(own, extra)
        place = x[:, -1]
        away = x[:, :-1] - line(place)  # from the line of the corpus
        mean = np.average(away, axis=0, weights=c)
        variance = np.average((away - mean) ** 2, axis=0, weights=c) + eps
        at_0, at_1 = _line(np.column_stack([away, place]), c)([0, 1])
        slope = (at_1 - at_0) * np.sqrt(reach / v0)
        points.append([mean / np.sqrt(v0), spread * np.log(variance / v0) / np.sqrt(2), order * slope])
    points = np.array(points)
    points -= points.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(points.reshape(len(points), -1).T))
    whitening = np.where(variances > 1e-9, variances, np.inf) ** (-0.5 * whiten)

    def cosine():
        a, b = (whitening * (points[k].ravel() @ axes) for k in (i, j))
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    value = cosine()
    points[:, 2] = 0
    return value, value - cosine()


def _joined(*groups):
    """Vectors and weights of the union of groups."""
    return tuple(np.concatenate(parts) for parts in zip(*groups, strict=True))


def _line(x, c):
    """Lines of least squares along the places, which are the last column, as a function of places."""
    root, place = np.sqrt(c)[:, None], x[:, -1]
    design = np.column_stack([np.ones(len(place)), place])
    (level, slope), *_ = np.linalg.lstsq(root * design, root * x[:, :-1], rcond=None)
    return lambda at: level + np.outer(at, slope)


# Words of texts as vectors of one or several tables, word by word.


class Words:
    """A table of words in order of frequency."""

    def __init__(self, vectors):
        self.vectors = {word: np.asarray(vector, dtype=float) for word, vector in vectors.items()}
        self.width = len(next(iter(self.vectors.values())))
        self.median = np.median([np.linalg.norm(vector) for vector in self.vectors.values()])

    def own(self, word):
        """The word as it is in the table, or None."""
        return next((form for form in (word, word.lower()) if form in self.vectors), None)

    def parts(self, word):
        """A known word itself; of an unknown one, what is between hyphens."""
        return [word] if self.own(word) else [part for part in word.split("-") if any(map(str.isalnum, part))]

    def vector(self, word, unknown):
        if self.own(word) is None and unknown == "ignore":
            return np.zeros(self.width)
        total = np.zeros(self.width)
        for part in self.parts(word):
            known = self.own(part)
            total += self.median * self.spelled(part) if known is None else self.vectors[known]
        return total

    def spelled(self, word):
        """A vector of unit length by the spelling of a word, distributed like the unit vectors of the table."""
        units = np.array([vector / (np.linalg.norm(vector) or 1) for vector in self.vectors.values()])
        return _unit(units.mean(axis=0) + units.std(axis=0) * spelling(word, self.width))

    def rank(self, word, unknown):
        """That of the rarest part; words that are unknown are like the last one."""
        order, last = list(self.vectors), len(self.vectors) - 1
        parts = [word] if unknown == "ignore" else self.parts(word)
        return max([order.index(self.own(part)) if self.own(part) else last for part in parts], default=last)


class Static:
    """A static model: vectors of pieces, and the function that splits a word into them."""

    def __init__(self, split, pieces):
        self.split, self.pieces = split, {piece: np.asarray(vector, dtype=float) for piece, vector in pieces.items()}
        self.width = len(next(iter(self.pieces.values())))
        self.median = np.median([np.linalg.norm(vector) for vector in self.pieces.values()])

    def vector(self, word):
        forms = [piece if piece in self.pieces else piece.lower() for piece in self.split(word)]
        return np.sum([np.zeros(self.width), *(self.pieces[form] for form in forms if form in self.pieces)], axis=0)


def spelling(word, width):
    """The direction of a word by its parts of 3 to 5 characters, with the length of a standard normal vector."""
    bracketed = f"<{word.lower()}>"
    total = np.zeros(width)
    for size in (3, 4, 5):
        for start in range(len(bracketed) - size + 1):
            gram = bracketed[start : start + size]
            total += np.random.RandomState(zlib.crc32(gram.encode())).standard_normal(width)
    return np.sqrt(width) * _unit(total)


def _unit(vector):
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def counts_as_word(token):
    """Whether a token has a letter or digit, or is a sign of currency or percent, or one of a few emoji."""
    return any(map(str.isalnum, token)) or any(sign in token for sign in "$€£%‰😀🐈")


def words_in_tables(texts, tables, params, frequencies):
    """Words, vectors and weights of texts, which are lists of tokens, in tables side by side.

    `params` are those of EmbeddingVectorizer, `frequencies` probabilities of words or "zipf".
    """
    return [_words_of_text(tokens, tables, params, frequencies) for tokens in texts]


def _words_of_text(tokens, tables, params, frequencies):
    tokens = [token for token in tokens if params["punctuation"] or counts_as_word(token)]
    if params["pad_token"] is not None:
        tokens = [*tokens, params["pad_token"]]
    found = [(word, *_word_in_tables(word, tables, params, frequencies)) for word in tokens]
    return [(word, vector, weight) for word, vector, weight in found if vector is not None]


def _word_in_tables(word, tables, params, frequencies):
    """Vector and weight of a word; no vector if no table has any."""
    named = [table for table in tables if table != "spelling"]
    statics = [table for table in named if isinstance(table, Static)]
    leading = [*statics, *named][0]
    sides = {}
    for i, table in enumerate(tables):
        if table == "spelling":
            sides[i] = spelling(word, sum(other.width for other in named))
        elif isinstance(table, Static):
            sides[i] = table.vector(word)
        else:
            sides[i] = table.vector(word.lower() if params["lowercase"] else word, params["unknown"])
    n_found = sum(bool(side.any()) for side in sides.values())
    if not n_found:
        return None, None
    length = np.linalg.norm(sides[tables.index(leading)]) or leading.median
    factor = length / leading.median
    units = {i: _unit(side) / np.sqrt(n_found) for i, side in sides.items()}
    if "norm" in params["weighting"] and not statics:
        units = {i: unit / max(factor, 0.1) if tables[i] == "spelling" else unit for i, unit in units.items()}
    vector = np.concatenate(list(units.values()))
    weight = 1.0
    for part in params["weighting"]:
        if part == "norm":
            weight *= factor
        elif part == "sif":
            weight *= params["a"] / (params["a"] + _probability(word, tables, params, frequencies))
        else:
            weight *= part(word)
    return (vector if params["unit_norm"] else length * vector), weight


def _probability(word, tables, params, frequencies):
    if frequencies != "zipf":
        return frequencies.get(word, frequencies.get(word.lower(), 0))
    table = next(table for table in tables if isinstance(table, Words))
    rank = table.rank(word.lower() if params["lowercase"] else word, params["unknown"])
    return 1 / ((rank + 2.7) * np.log(len(table.vectors)))
