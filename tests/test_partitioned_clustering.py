"""Clusters of a corpus in many parts: those of one machine, whatever happens to the workers."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from test_partitions import Deadly, arm, die, draw, fail, loaded_part, moved, pids

from sklearn_mcsg import GroupClustering, GroupEmbedding, PartitionedClustering, make_text_embedding
from sklearn_mcsg.datasets import load_short_texts


def planted(n=400, k=5, distance=1.0, seed=0):
    """Parts of a corpus with clusters that overlap unless they are far apart, and the cluster of each group."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    means = distance * rng.normal(size=(k, 6))[truth] + 0.5 * rng.normal(size=(n, 6))
    X = means[:, None] + rng.normal(size=(n, 8, 6))
    return np.split(X, [n // 8, n // 2, n // 2 + 1]), truth


def labels_of_all(clustering):
    return np.concatenate([clustering.labels_of(part) for part in range(len(clustering.sizes_))])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("sample_size", [100, 1000])
@pytest.mark.parametrize("n_clusters", [7, None])
def test_same_clusters_as_on_one_machine(n_clusters, sample_size, normalize, client):
    parts, _ = planted(distance=2)
    params = dict(
        embedding=GroupEmbedding(prior_strength=0.5, normalize=normalize), sample_size=sample_size, random_state=0
    )
    clustering = PartitionedClustering(n_clusters, client=client, **params)
    assert clustering.fit(parts) is clustering
    X = np.concatenate(parts)
    single = GroupClustering(n_clusters, **params).fit(X)
    assert_array_equal(labels_of_all(clustering), single.labels_)
    assert_array_equal(clustering.sizes_, [50, 150, 1, 199])
    assert_array_equal(clustering.cluster_sizes_, np.bincount(single.labels_))
    assert_allclose(clustering.cluster_centers_, single.cluster_centers_, atol=1e-9)
    assert_array_equal(clustering.predict(X), single.predict(X))
    assert clustering.n_clusters_ == single.n_clusters_ > 1


def test_planted_clusters(client):
    parts, truth = planted(distance=4)
    clustering = PartitionedClustering(5, client=client, random_state=0).fit(parts)
    assert adjusted_rand_score(truth, labels_of_all(clustering)) == 1


def test_more_clusters_than_groups(client):
    X = np.eye(3)[:, None, :].repeat(2, axis=1)
    with pytest.raises(ValueError, match="n_clusters=7 is more than the 6 groups"):
        PartitionedClustering(7, client=client).fit([X, X])


def test_files_of_texts(client, tmp_path):
    """The example of the docstring and of the guide."""
    data = load_short_texts()
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("\n".join(data.data[i::3]), encoding="utf8")
    vectorizer, embedding = make_text_embedding(n_components=256)
    vectorizer.fit(["my puppy is ill"])

    def load(path):
        return vectorizer.transform(path.read_text(encoding="utf8").splitlines())

    paths = sorted(tmp_path.glob("*.txt"))
    clustering = PartitionedClustering(12, embedding=embedding, load=load, client=client, random_state=0).fit(paths)
    truth = np.concatenate([data.target[i::3] for i in range(3)])
    assert adjusted_rand_score(truth, labels_of_all(clustering)) > 0.5
    assert np.mean(clustering.predict(load(paths[0])) == clustering.labels_of(0)) > 0.8  # communities have no centres


def test_groups_and_points_stay_where_they_are(client):
    parts = [draw(i, 2000) for i in range(4)]
    embedding = GroupEmbedding().fit(parts[0])
    before = moved(client)
    clustering = PartitionedClustering(3, embedding=embedding, client=client, sample_size=50).fit(parts)
    assert moved(client) - before < sum(clustering.sizes_) * embedding.components_.shape[0] * 4 / 2
    assert not hasattr(embedding, "load")
    assert clustering.embedding_ is not embedding


def test_a_clone_has_the_same_client(client):
    clustering = PartitionedClustering(2, client=client).fit([draw(0, 9)])
    twin = clone(clustering)
    assert twin.client is client
    assert not hasattr(twin, "cluster_centers_")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_workers_that_die(client, tmp_path):
    """While they learn the corpus, learn its axes, embed, cluster and tell labels."""
    parts, _ = planted(80)
    paths = [str(tmp_path / f"{i}.npy") for i in range(4)]
    for path, part in zip(paths, parts, strict=True):
        np.save(path, part)
    expected = labels_of_all(PartitionedClustering(3, client=client, random_state=0).fit(parts))
    flag, room = str(tmp_path / "flag"), "sklearn_mcsg.clustering._partitions"
    clustering = PartitionedClustering(3, load=Deadly(paths[3]), client=client, random_state=0)
    arm(client, flag, room, "_labels", die)
    clustering.fit(paths)
    assert len(list(tmp_path.glob("read*"))) >= 6
    before = pids(client)
    Path(flag).unlink(missing_ok=True)
    arm(client, flag, room, "_labels", die)
    assert_array_equal(labels_of_all(clustering), expected)
    assert not Path(flag).exists()
    assert before - pids(client)


def test_workers_import_the_room_before_a_task_runs(client, monkeypatch):
    functions, submit = [], client.submit
    monkeypatch.setattr(
        client, "submit", lambda function, *args, **how: functions.append(function) or submit(function, *args, **how)
    )
    PartitionedClustering(2, client=client).fit([draw(0, 20), draw(1, 20)]).labels_of(1)
    assert len(functions) > 5
    assert {function.__module__ for function in functions} == {"sklearn_mcsg.clustering._partitions"}


@pytest.mark.parametrize("fitted", [False, True], ids=["learns", "fitted"])
@pytest.mark.parametrize("name", ["narrow", "none", "empty", "text", "nothing", "nan"])
def test_parts_that_cannot_be_used_are_named(name, fitted, client):
    embedding = GroupEmbedding().fit(draw(1, 9)) if fitted else GroupEmbedding()
    clustering = PartitionedClustering(2, embedding=embedding, load=loaded_part, client=client)
    with pytest.raises((TypeError, ValueError), match=rf"The part '{name}' "):
        clustering.fit(["good", name, "good"])
    assert not hasattr(clustering, "sizes_")


def test_errors_are_sentences(client):
    with pytest.raises(ValueError, match="There are no parts: X must hold at least one"):
        PartitionedClustering(2, client=client).fit([])
    with pytest.raises(TypeError, match="got Pipeline: steps before it, such as a vectorizer, belong in load"):
        PartitionedClustering(2, embedding=make_text_embedding(), client=client).fit([["a text"]])
    with pytest.raises(OSError, match="the disk is gone") as caught:
        PartitionedClustering(2, load=fail, client=client).fit(["a"])
    assert re.search("This happened in the part 'a'", "".join(caught.value.__notes__))
    with pytest.raises(ValueError, match="'n_clusters' parameter"):
        PartitionedClustering(0, client=client).fit([draw(0, 9)])
    with pytest.raises(NotFittedError):
        PartitionedClustering(2).labels_of(0)
    with pytest.raises(NotFittedError):
        PartitionedClustering(2).predict(draw(0, 2))
    clustering = PartitionedClustering(2, client=client).fit([draw(0, 9)])
    with pytest.raises(ValueError, match="part=1 is not among the 1 parts, which count from 0"):
        clustering.labels_of(1)
    with pytest.raises(ValueError, match="expecting 20 features"):
        clustering.predict(np.zeros((2, 3, 4)))
