"""Groups as vectors: an embedding in which a model comparison is a distance.

To second order around the model of the corpus, `divergence` is the squared length of a difference of coordinates, the
Fisher metric of the likelihood. A group becomes a point,

    groups --statistics--> Statistics --coordinates--> location, scale[, order] --centre, rotate, whiten--> z

and whatever takes vectors takes groups: k-means, linear models, vector databases, approximate search. A likelihood
without coordinates, or any other similarity, is embedded by landmarks: double-centred distances to reference groups and
their leading eigenvectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import Count
from sklearn_mcsg._sklearn import Interval, StrOptions
from sklearn_mcsg.embedding._landmarks import Landmarks
from sklearn_mcsg.embedding._points import ROUNDING, PointComparison
from sklearn_mcsg.embedding._shares import explain_cosine, explainable
from sklearn_mcsg.engine.capabilities import instance_of
from sklearn_mcsg.engine.chance import checked_null, pair_size
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.engine.coordinates import (
    LARGEST_FACTOR,
    Axes,
    Coordinates,
    Moments,
    batches,
    corpus_of,
    merged_corpora,
    merged_moments,
)
from sklearn_mcsg.engine.cosine import compare_unit_rows, compare_units, unit_length
from sklearn_mcsg.engine.outputs import OUTPUTS, choose_output
from sklearn_mcsg.engine.parallel import progress, run
from sklearn_mcsg.explanation import PairExplanation
from sklearn_mcsg.groups import Groups, GroupsLike, check_same_length, validate_group
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.arrays import ArrayKind
from sklearn_mcsg.likelihoods import LIKELIHOODS, Likelihood, Statistics
from sklearn_mcsg.similarity import GroupSimilarity, ModelComparisonSimilarity
from sklearn_mcsg.similarity.estimator import GroupsTransformer, snapshot
from sklearn_mcsg.similarity.pvalues import Calibrates
from sklearn_mcsg.storage import register

_SHARED = ("prior_strength", "reg_covar", "random_state", "n_jobs", "verbose")  # parameters, with the similarity
TOO_FEW = "GroupEmbedding needs at least 2 groups to learn their axes from, got n_samples = 1."


@register
class GroupEmbedding(GroupsTransformer, Calibrates):
    """Embed groups of vectors as points whose distances are model comparisons.

    To second order around the model of the corpus, the output ``"divergence"`` of `ModelComparisonSimilarity` is the
    squared length of a difference of coordinates. `transform` returns these coordinates, centred and rotated to their
    principal axes and, with `whiten`, scaled by a power of their variances.

    Parameters
    ----------
    likelihood : {"diag", "spherical", "full", "vmf", "trend"}, Likelihood or similarity estimator, default="diag"
        The model of a group. A similarity estimator, such as `WordMoversDistance`, is embedded by landmarks.
    whiten : float, default=0.0
        Power of whitening, from 0 (none) to 1 (all components get unit variance). 0.5 suits raw word vectors.
    spread : float or array-like of shape (n_features,), default=1.0
        Factor on the coordinates of scale, that is of log variances. With 0 only means count. An array has one factor
        for each of them: one per feature for ``"diag"`` and ``"trend"``.
    order : float, default=1.0
        Factor on the coordinates of order, that is of slopes. Only ``"trend"`` has them; landmarks ignore it.
    n_components : int, default=None
        Number of leading components to keep; ``None`` keeps all.
    normalize : bool, default=False
        Whether to scale embeddings to unit length. A group at the mean of the corpus stays the zero vector.
    rotate : bool, default=True
        Whether to rotate coordinates to their principal axes. Without rotation, features stay apart, as scalers and
        trees need it: the last components of a rotation have tiny variances, which a scaler turns into noise. `whiten`
        and `n_components` need the rotation.
    prior_strength : float, default=0.0
        Number of pseudo-vectors in each model. They have the mean and variance of the fitted corpus and are added to
        every group. With a positive value, groups may be empty.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector. A warning says if it outweighs the variances of the
        vectors, which are then in too small a unit.
    method : {"auto", "coordinates", "landmarks"}, default="auto"
        ``"auto"`` uses coordinates where the likelihood has them, and landmarks otherwise.
    n_landmarks : int, default=512
        Largest number of landmarks: groups of the corpus.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the landmarks and, unless it has a `random_state` of its own, the pairs of
        `calibrate`. Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    n_components_ : int
        Number of components.
    components_ : ndarray of shape (`n_components_`, n_coordinates)
        Directions of the components in the space of coordinates.
    explained_variance_ : ndarray of shape (`n_components_`,)
        Variance of the coordinates along each component, before whitening.
    mean_ : ndarray of shape (n_coordinates,)
        Mean of the coordinates.
    n_features_in_ : int
        Width of the vectors seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when `X` was a data frame.

    See Also
    --------
    ModelComparisonSimilarity : The exact comparison, pair by pair.
    make_text_embedding : The embedding recommended for texts.

    Notes
    -----
    The embedding keeps no groups. `fit` makes two passes over them: one for the model of the corpus, one for mean and
    covariance of the coordinates.

    Parameters changed after `fit` take effect at the next `fit`, except `normalize`, `n_jobs`, `verbose`, and
    `random_state` in `calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from sklearn_mcsg import GroupEmbedding
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(5 * (i % 2), size=(rng.integers(3, 9), 4)) for i in range(20)]
    >>> Z = GroupEmbedding(prior_strength=0.5).fit_transform(X)
    >>> Z.shape
    (20, 8)
    >>> KMeans(2, n_init=1, random_state=0).fit_predict(Z)[:6] % 2
    array([0, 1, 0, 1, 0, 1], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict] = {
        "likelihood": [StrOptions(set(LIKELIHOODS)), Likelihood, GroupSimilarity],
        "whiten": [Interval(Real, 0, 1, closed="both")],
        "spread": [Interval(Real, 0, LARGEST_FACTOR, closed="both"), "array-like"],
        "order": [Interval(Real, 0, LARGEST_FACTOR, closed="both")],
        "n_components": [Count(), None],
        "normalize": ["boolean"],
        "rotate": ["boolean"],
        "method": [StrOptions({"auto", "coordinates", "landmarks"})],
        "n_landmarks": [Count()],
        **{name: ModelComparisonSimilarity._parameter_constraints[name] for name in _SHARED},
    }
    _space: Coordinates | Landmarks
    _moments: Moments
    _axes: Axes
    _rotated: bool
    _whiten: float
    _fitted_key: tuple

    def __init__(
        self,
        likelihood: Any = "diag",
        *,
        whiten: float = 0.0,
        spread: Any = 1.0,
        order: float = 1.0,
        n_components: int | None = None,
        normalize: bool = False,
        rotate: bool = True,
        prior_strength: float = 0.0,
        reg_covar: float = 1e-6,
        method: str = "auto",
        n_landmarks: int = 512,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.whiten = whiten
        self.spread = spread
        self.order = order
        self.n_components = n_components
        self.normalize = normalize
        self.rotate = rotate
        self.prior_strength = prior_strength
        self.reg_covar = reg_covar
        self.method = method
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _validate_params(self) -> None:
        super()._validate_params()
        self._checked_spread()
        if not self.rotate and (self.whiten > 0 or self.n_components is not None):
            raise ValueError(
                f"rotate=False leaves coordinates as they are, so there are no principal axes to scale or to choose: "
                f"it needs whiten=0 and n_components=None, got {self.whiten} and {self.n_components}."
            )

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Learn the model of the corpus, and the principal axes of its coordinates.

        Parameters
        ----------
        X : groups
            The groups, in any form that `validate_groups` takes.
        y : None
            Ignored.

        Returns
        -------
        self : GroupEmbedding
        """
        self._fit(X)
        return self

    def _fit(self, X: GroupsLike) -> Groups | ArrayGroups:
        """Fit, and return the validated groups."""
        self._validate_params()
        similarity = self._landmark_similarity()
        groups = self._read_groups(X, arrays=similarity is None, fitted=False)
        if len(groups) < 2:
            raise ValueError(TOO_FEW)
        learnt = self._learnt(similarity, groups)
        self._keep_features(X, groups)
        self._keep(learnt)
        return groups

    def fit_transform(self, X: GroupsLike, y: object = None) -> np.ndarray:
        """Fit to groups and embed them, in one pass over the input: ``fit(X).transform(X)``.

        Parameters
        ----------
        X : groups
            The groups, in any form that `validate_groups` takes.
        y : None
            Ignored.

        Returns
        -------
        embedding : ndarray of shape (n_groups, `n_components_`)
        """
        return self._with_index(X, self._embed(self._fit(X)))

    def partial_fit(self, X: GroupsLike, y: object = None) -> Self:
        """Add groups to the corpus whose principal axes are learnt.

        The first call fixes the model of the corpus. Later calls merge mean and covariance of the coordinates exactly,
        so the result is that of one `fit` on all groups around the same model. Embeddings returned before change.

        Parameters
        ----------
        X : groups
            Further groups.
        y : None
            Ignored.

        Returns
        -------
        self : GroupEmbedding
        """
        if not hasattr(self, "_space"):
            return self.fit(X)
        self._validate_params()
        groups = self._read(X)
        self._keep(self._fitted(self._space, self._moments.merged(self._moments_of(self._space, groups))))
        return self

    def transform(self, X: GroupsLike) -> np.ndarray:
        """Embed groups.

        Parameters
        ----------
        X : groups
            Groups to embed.

        Returns
        -------
        embedding : ndarray of shape (n_groups, `n_components_`)
        """
        self = snapshot(self)
        check_is_fitted(self, "components_")
        return self._with_index(X, self._embed(self._read(X)))

    def pairwise(self, X: GroupsLike, Y: GroupsLike | None = None, *, output: str | None = None) -> np.ndarray:
        """Compare all pairs of groups by the cosine of their embeddings.

        Parameters
        ----------
        X : groups
            Groups along the rows.
        Y : groups, default=None
            Groups along the columns; ``None`` means `X`.
        output : {"distance", "similarity"}, default=None
            What to return for each pair: one minus the cosine (default), or the cosine.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, n_groups_Y)
        """
        return compare_units(*self._embed_both(X, Y, output))

    def paired(self, X: GroupsLike, Y: GroupsLike, *, output: str | None = None) -> np.ndarray:
        """Compare groups row by row by the cosine of their embeddings.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.
        output : {"distance", "similarity"}, default=None
            What to return for each pair: one minus the cosine (default), or the cosine.

        Returns
        -------
        values : ndarray of shape (n_groups,)
        """
        return compare_unit_rows(*self._embed_both(X, Y, output, paired=True))

    def explain(
        self, a: GroupsLike, b: GroupsLike, *, labels: Sequence[Sequence[str]] | None = None
    ) -> PairExplanation:
        """Explain the cosine of two groups by pairs of their vectors.

        The coordinates of a group are divided among its vectors: means by their weighted deviation, log variances by
        each vector's share of the variance, and what the prior adds, by weight. The cosine is then a sum over pairs.

        Parameters
        ----------
        a, b : array-like of shape (n_vectors, n_features), or Groups of one group
            The two groups.
        labels : pair of sequences, default=None
            Names of the vectors: of those of `a` and of those of `b`. ``None`` means the labels of the groups or, if
            they have none, positions.

        Returns
        -------
        explanation : PairExplanation
            Its `matrix` sums to the cosine of the embeddings. With ``"trend"``, its `order` is the part of the cosine
            that is due to the order of the vectors.
        """
        self = snapshot(self)
        check_is_fitted(self, "components_")
        space = explainable(self._space)
        pair = [validate_group(x, name=name) for name, x in (("a", a), ("b", b))]
        for group in pair:
            self._check_width(group)
        return explain_cosine(space, self.mean_, self._axes.projection(self._whiten), pair, labels)

    def _sizes_and_distances(self, X: GroupsLike, Y: GroupsLike) -> tuple[np.ndarray, np.ndarray]:
        left, right = self._check_fitted_groups(X), self._check_fitted_groups(Y, "Y")
        check_same_length(left, right)
        distances = compare_unit_rows(self._units(left), self._units(right), "distance")
        return pair_size(left.totals, right.totals), distances.astype(np.float64)

    def _sizes_for_pvalues(self, groups: Groups | None) -> np.ndarray | None:
        return None if groups is None else groups.totals

    # The comparer and its storage ---------------------------------------------------------------------------------

    def __mcsg_comparer__(self, groups: Groups | None = None) -> Comparer:
        """The comparer that keeps the embeddings of groups."""
        check_is_fitted(self, "components_")
        if groups is None:
            raise TypeError("An embedding keeps no groups: pass the groups to draw pairs from.")
        comparison = PointComparison(self)
        return Comparer.of(comparison, comparison.summarize(groups), "distance", groups.output_dtype)

    def __mcsg_state__(self) -> dict[str, Any]:
        """What `fit` has learnt, for storage; empty before `fit`."""
        self = snapshot(self)
        if not hasattr(self, "_space"):
            return {}
        if self._axes_key() != self._fitted_key:
            raise ValueError("rotate, whiten or n_components has changed since fit: call fit before saving.")
        return {"space": self._space, "moments": self._moments, "null": self._null, **self._stored_features()}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Keep what was stored."""
        self._validate_params()
        if not isinstance(state["space"], Coordinates | Landmarks) or not isinstance(state["moments"], Moments):
            raise TypeError("an embedding needs a space and its moments")
        self._restore_features(state)
        self._keep(self._fitted(state["space"], state["moments"]))
        self._null = checked_null(state["null"])

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the columns of `transform`.

        Without rotation they say what a coordinate is: ``location_x0`` for the mean of the feature ``x0``, ``scale_x0``
        for the logarithm of its variance and, if order counts, ``order_x0`` for its slope. Coordinates that do not
        belong to single features are numbered, such as ``scale2``. With rotation a coordinate is a direction and has
        the name of the class and a number.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only used to check feature names against those seen in `fit`.

        Returns
        -------
        names : ndarray of str
        """
        names = super().get_feature_names_out(input_features)
        if self._rotated or not isinstance(self._space, Coordinates):
            return names
        features = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return np.array(self._space.names(features), dtype=object)

    # Plumbing -----------------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _allows_empty(self) -> bool:
        """Whether groups may have no vectors; a similarity to embed has a `prior_strength` of its own."""
        own = self.likelihood if isinstance(self.likelihood, GroupSimilarity) else self
        return getattr(own, "prior_strength", 0) > 0

    def _new_likelihood(self) -> Likelihood:
        return instance_of(self.likelihood, LIKELIHOODS)

    def _landmark_similarity(self) -> GroupSimilarity | None:
        """The similarity to embed by landmarks, or None where there are coordinates."""
        is_likelihood = isinstance(self.likelihood, str | Likelihood)
        has_coordinates = is_likelihood and self._new_likelihood().defines("coordinates")
        if self.method == "coordinates" and not has_coordinates:
            raise ValueError(f"{type(self.likelihood).__name__} has no coordinates: choose method='landmarks'.")
        if has_coordinates and self.method != "landmarks":
            return None
        if np.any(np.asarray(self.spread) != 1):
            raise ValueError(f"spread={self.spread} needs coordinates; with landmarks it must be 1.")
        if is_likelihood:
            params: Any = {"prior_strength": self.prior_strength, "reg_covar": self.reg_covar, "n_jobs": self.n_jobs}
            return ModelComparisonSimilarity(self.likelihood, output="divergence", **params)
        similarity = clone(self.likelihood)
        output = OUTPUTS.get(similarity.output)  # the fit of the similarity refuses unknown ones
        return similarity.set_params(output="distance") if output and output.higher_is_nearer else similarity

    def _learnt(self, similarity: GroupSimilarity | None, *parts: Any) -> dict[str, Any]:
        """What a corpus in parts teaches: groups or their statistics or, for landmarks, one part of groups."""
        if similarity is None:
            likelihood = self._new_likelihood()
            corpora = [corpus_of(part, likelihood, self.reg_covar) for part in parts]
            space: Coordinates | Landmarks = self._coordinates_around(merged_corpora(likelihood, *corpora))
        else:
            state = check_random_state(self.random_state)
            space = Landmarks.learnt_from(parts[0], similarity, self.n_landmarks, state)
        return self._fitted(space, merged_moments(*(self._moments_of(space, part) for part in parts)))

    def _coordinates_around(self, corpus: Statistics) -> Coordinates:
        """The coordinates around the model of a corpus."""
        params = self.reg_covar, float(self.prior_strength), self._checked_spread(), float(self.order)
        return Coordinates.around(corpus, self._new_likelihood(), *params)

    def _checked_spread(self) -> float | np.ndarray:
        if isinstance(self.spread, Real):
            return float(self.spread)
        spread = check_array(self.spread, dtype=np.float64, ensure_2d=False, input_name="spread")
        if (spread < 0).any():
            raise ValueError(f"spread must not be negative, got {spread.min()}.")
        if (spread > LARGEST_FACTOR).any():
            raise ValueError(f"spread must be at most {LARGEST_FACTOR:g}, got {spread.max():g}.")
        return spread

    def _fitted(self, space: Coordinates | Landmarks, moments: Moments) -> dict[str, Any]:
        """The fitted attributes: the principal axes, and what they follow from."""
        axes = Axes.of(moments) if self.rotate else Axes.unrotated(moments)
        rank = len(axes.variance)
        if self.n_components is not None and self.n_components > rank:
            raise ValueError(f"n_components={self.n_components} is more than {rank}, the rank of the coordinates.")
        n_components = rank if self.n_components is None else int(self.n_components)
        axes = axes.leading(n_components)
        return {
            "n_components_": n_components,
            "mean_": axes.mean,
            "components_": axes.components,
            "explained_variance_": axes.variance,
            "_space": space,
            "_moments": moments,
            "_axes": axes,
            "_rotated": self.rotate,
            "_whiten": float(self.whiten),
            "_fitted_key": self._axes_key(),
            "_null": None,
        }

    def _axes_key(self) -> tuple:
        """The parameters that the axes depend on."""
        return self.rotate, self.whiten, self.n_components

    def _keep(self, fitted: dict[str, Any]) -> None:
        """Set fitted attributes, once everything that can fail has succeeded, all at once."""
        self.__dict__.update(fitted)

    def _read(self, X: GroupsLike) -> Any:
        """Validated groups, or `ArrayGroups` if X holds arrays of another library and there are coordinates."""
        return self._read_groups(X, arrays=isinstance(self._space, Coordinates), fitted=True)

    def _moments_of(self, space: Coordinates | Landmarks, groups: Groups | ArrayGroups | Statistics) -> Moments:
        """Moments of the coordinates of groups."""
        return reduce(Moments.merged, (moments for _, moments in self._over_batches(Moments.of, groups, space)))

    def _embed(self, groups: Groups | ArrayGroups | Statistics, dtype: np.dtype | None = None) -> Any:
        """Embeddings of validated groups, or of groups whose statistics are known, in their or a given precision."""
        kind = groups.kind if isinstance(groups, ArrayGroups) else None
        project = partial(_project, self.mean_, self._axes.projection(self._whiten), self.normalize, kind)
        if isinstance(groups, ArrayGroups):
            return groups.kind.xp.concat([rows for _, rows in self._over_batches(project, groups, self._space)])
        precision = dtype if isinstance(groups, Statistics) else dtype or groups.output_dtype
        result = np.empty((len(groups), self.n_components_), precision)
        for batch, rows in self._over_batches(project, groups, self._space):
            result[batch] = rows
        return result

    def _over_batches(self, function: Callable, groups: Any, space: Coordinates | Landmarks) -> Iterator[Any]:
        """Each batch of groups with a function of its coordinates, in the order of the groups, by several jobs.

        The order decides how sums of the results are rounded, so it must not depend on which job is ready first.
        """
        every = list(batches(len(groups), space.width))
        tasks = ((function, space, groups[batch], batch) for batch in every)
        n_jobs = 1 if isinstance(groups, ArrayGroups) else self.n_jobs
        early: dict[int, Any] = {}  # results that are ready before their turn, by their first group
        turn = 0
        with progress(self.verbose, len(groups), "embedding", " groups") as advance:
            for batch, result in run(_call, tasks, len(every), n_jobs):
                advance(batch.stop - batch.start)
                early[batch.start] = batch, result
                while turn in early:
                    done, result = early.pop(turn)
                    turn = done.stop
                    yield done, result

    def _units(self, groups: Groups | Statistics, dtype: np.dtype | None = None) -> np.ndarray:
        """Embeddings at unit length; a group at the mean of the corpus stays the zero vector."""
        return unit_length(self._embed(groups, dtype), ROUNDING)

    def _embed_both(
        self, X: GroupsLike, Y: GroupsLike | None, output: str | None, paired: bool = False
    ) -> tuple[np.ndarray, np.ndarray, str]:
        """Embeddings of both sides at unit length, and the output; without `Y`, both sides are one object.

        Everything is validated before anything is computed.
        """
        self = snapshot(self)
        check_is_fitted(self, "components_")
        output = choose_output("distance" if output is None else output, PointComparison.outputs).name
        groups = self._check_fitted_groups(X)
        if Y is None:
            units = self._units(groups)
            return units, units, output
        others = self._check_fitted_groups(Y, "Y")
        if paired:
            check_same_length(groups, others)
        return self._units(groups), self._units(others), output


def _project(
    mean: np.ndarray, matrix: np.ndarray, normalize: bool, kind: ArrayKind | None, coordinates: np.ndarray
) -> Any:
    """Coordinates, centred, rotated, whitened and, if asked for, at unit length; computed where arrays of a kind are.

    At unit length, groups without components above rounding become zero. Without a kind, arrays are those of NumPy.
    """
    if kind is None:
        rows = (coordinates - mean) @ matrix
        return unit_length(rows, ROUNDING) if normalize else rows
    xp, rows = kind.xp, kind.asarray(coordinates - mean) @ kind.asarray(matrix)
    if normalize:
        largest = xp.max(xp.abs(rows), axis=1, keepdims=True)
        rows = rows / xp.where(largest > ROUNDING, largest, float("inf"))
        length = xp.linalg.vector_norm(rows, axis=1, keepdims=True)
        rows = rows / xp.where(length > 0, length, 1.0)
    return kind.result(rows)


def _call(function: Callable, space: Coordinates | Landmarks, groups: Any, batch: slice) -> tuple[slice, Any]:
    return batch, function(space(groups, batch.start))
