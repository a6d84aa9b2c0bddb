"""What a likelihood and a criterion can do together; the errors name the combinations that work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import clone

from sklearn_mcsg.criteria import CRITERIA, Criterion
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import Output
from sklearn_mcsg.likelihoods import LIKELIHOODS, Likelihood

_LIKELIHOODS: Mapping[str, Any] = LIKELIHOODS  # the registry as a user may extend it


def instance_of(given: Any, registry: Mapping[str, Any]) -> Any:
    """A new object of the class that a registry has under a name, or a copy of a given object."""
    return registry[given]() if isinstance(given, str) else clone(given)


def new_model(
    likelihood: str | Likelihood,
    criterion: str | Criterion,
    *,
    reg_covar: float,
    prior_strength: float,
    penalty_scale: float = 1.0,
    balanced: bool = False,
) -> GroupModel:
    """The model of a group from parameters of an estimator, before anything is learnt.

    Raise unless the likelihood defines what the criterion and the prior need.
    """
    own: Likelihood = instance_of(likelihood, LIKELIHOODS)
    model = GroupModel(own, instance_of(criterion, CRITERIA), reg_covar, penalty_scale, balanced)
    model.criterion.check(own)
    if prior_strength > 0 and not own.defines("pseudo_group"):
        raise ValueError(f"{type(own).__name__} defines no pseudo_group: set prior_strength=0.")
    if model.lacks_prior and not own.defines("learn_prior"):
        raise ValueError(f"{type(own).__name__} defines no learn_prior: give it a prior.")
    return model


def check_output(model: GroupModel, output: Output) -> None:
    """Raise unless the likelihood and the criterion have an output."""
    if not output.is_usable_for(model.likelihood, model.criterion):
        likelihoods = _names(_LIKELIHOODS, lambda kind: kind.has_kernel)
        criteria = _names(CRITERIA, lambda kind: kind.has_kernel)
        raise ValueError(
            f"output={output.name!r} is positive definite for the likelihoods {likelihoods} with the criteria "
            f"{criteria}, not for {_described(model)}: choose one of these combinations, or another output."
        )


def check_arrays(model: GroupModel) -> None:
    """Raise unless the likelihood and the criterion take arrays of other libraries than NumPy."""
    if model.likelihood.array_unions is None or not model.criterion.takes_arrays:
        likelihoods = _names(_LIKELIHOODS, lambda kind: kind.array_unions)
        criteria = _names(CRITERIA, lambda kind: kind.takes_arrays)
        raise TypeError(
            f"Only the likelihoods {likelihoods} with the criteria {criteria} take arrays of other libraries than "
            f"NumPy, not {_described(model)}: choose one of these combinations, or convert the arrays, for example "
            f"PyTorch tensors by .cpu().numpy()."
        )


def needs_corpus(model: GroupModel, prior_strength: float, output: Output) -> list[str]:
    """The parameters that require learning from a corpus, as text for messages."""
    names = {criterion: name for name, criterion in CRITERIA.items()}
    criterion = names.get(type(model.criterion), type(model.criterion).__name__)
    reasons = {
        "prior_strength > 0": prior_strength > 0,
        f"criterion={criterion!r} without a prior": model.lacks_prior,
        f"output={output.name!r}": output.needs_corpus,
    }
    return [reason for reason, needed in reasons.items() if needed]


def _names(registry: Mapping[str, Any], can: Callable[[Any], object]) -> str:
    return ", ".join(repr(name) for name, kind in registry.items() if can(kind))


def _described(model: GroupModel) -> str:
    return f"{type(model.likelihood).__name__} with {type(model.criterion).__name__}"
