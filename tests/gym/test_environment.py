"""The Gymnasium environment: its rules, its registration, and its agreement with the walk."""

import subprocess
import sys

import gymnasium
import numpy as np
import pandas as pd
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

import afape
from afape.benchmark.synthetic import synthetic_mar
from afape.gym import ID, rollout
from afape.gym.environment import AcquisitionEnv
from afape.gym.vector import AcquisitionVectorEnv


class SumOfKnown:
    """Predicts 1 where the known values sum to more than 0."""

    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)


def records():
    """Four rows: complete, without b, without c, without the free a."""
    frame = pd.DataFrame(
        {
            "a": [1.0, -2.0, 3.0, None],
            "b": [-4.0, None, 5.0, 6.0],
            "c0": [7.0, 1.0, None, 2.0],
            "c1": [1.0, 1.0, None, 3.0],
            "y": [0, 1, 1, 0],
        }
    )
    problem = afape.Problem({"a": ["a"], "b": ["b"], "c": ["c0", "c1"]}, {"b": 2.0, "c": 3.0}, "y", 10.0)
    return afape.Retrospective(frame, problem)


@pytest.fixture(scope="module")
def synthetic():
    experiment = synthetic_mar(6_000)
    train, gaps = experiment.mechanism.hide(experiment.complete, 0).split([0.3, 0.7], 0)
    _, complete = experiment.complete.split([0.3, 0.7], 0)
    return afape.ImputedClassifier(LogisticRegression()).fit(train), gaps, complete


def test_an_episode_by_hand():
    env = AcquisitionEnv(records(), SumOfKnown())
    seen, info = env.reset(options={"row": 0})
    assert_array_equal(seen, [1, 0, 0, 0, 1, 0, 0])
    assert_array_equal(info["action_mask"], [0, 1, 1, 1])
    assert info["row"] == 0
    seen, reward, terminated, truncated, info = env.step(1)
    assert_array_equal(seen, [1, -4, 0, 0, 1, 1, 0])
    assert (reward, terminated, truncated) == (-2.0, False, False)
    assert_array_equal(info["action_mask"], [0, 0, 1, 1])
    assert_array_equal(env.action_masks(), [False, False, True, True])
    seen, reward, terminated, _, info = env.step(3)
    assert (reward, terminated, info["blocked"]) == (0.0, True, False)  # 1 - 4 <= 0 predicts 0, which is right
    with pytest.raises(RuntimeError, match=r"No episode is running; call reset\(\) first"):
        env.step(3)


@pytest.mark.parametrize("action", [0, 1], ids=["acquired", "not recorded"])
def test_what_is_not_open_ends_the_episode_like_stopping(action):
    env = AcquisitionEnv(records(), SumOfKnown())
    env.reset(options={"row": 1})  # a = -2 predicts 0, the label is 1
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["blocked"]) == (-10.0, True, True)


def test_a_free_group_with_a_gap_is_not_shown():
    env = AcquisitionEnv(records(), SumOfKnown())
    seen, info = env.reset(options={"row": 3})
    assert_array_equal(seen, np.zeros(7))
    assert_array_equal(info["action_mask"], [0, 1, 1, 1])


def test_passes_the_checker_of_gymnasium(synthetic):
    classifier, gaps, complete = synthetic
    for data in (gaps, complete):
        made = gymnasium.make(ID, data=data, classifier=classifier)
        assert isinstance(made.unwrapped, AcquisitionEnv)
        check_env(made.unwrapped)


def test_the_seed_decides_the_rows(synthetic):
    classifier, gaps, _ = synthetic
    rows = []
    for _ in range(2):
        env = AcquisitionEnv(gaps, classifier)
        env.reset(seed=5)
        rows.append([env.reset()[1]["row"] for _ in range(10)])
    assert rows[0] == rows[1]
    assert len(set(rows[0])) > 5


def test_the_vector_version_is_registered_and_steps_like_the_single_one():
    data = records()
    env = gymnasium.make_vec(
        ID, num_envs=3, vectorization_mode="vector_entry_point", data=data, classifier=SumOfKnown()
    ).unwrapped
    assert isinstance(env, AcquisitionVectorEnv)
    env.reset(seed=0)
    env.episodes.start(np.arange(3), np.array([0, 1, 2]))
    seen, reward, ended, truncated, info = env.step([1, 1, 3])
    singles = [AcquisitionEnv(data, SumOfKnown()) for _ in range(3)]
    for i, (single, action) in enumerate(zip(singles, [1, 1, 3], strict=True)):
        single.reset(options={"row": i})
        alone = single.step(action)
        assert_array_equal(seen[i], alone[0])
        assert (reward[i], ended[i], truncated[i]) == alone[1:4]
        assert_array_equal(info["action_mask"][i], alone[4]["action_mask"])
        assert info["blocked"][i] == alone[4]["blocked"]
    assert_array_equal(ended, [False, True, True])
    seen, reward, ended, _, info = env.step([3, 1, 1])  # the actions of the two that start anew are ignored
    assert_array_equal(reward[1:], 0.0)
    assert_array_equal(ended, [True, False, False])
    assert_array_equal(seen[1:, :4], np.nan_to_num(np.where([1, 0, 0, 0], data.values[info["row"][1:]], np.nan)))
    assert env.observation_space.contains(seen)


def test_masks_serve_sampling_and_gymnasium_s_own_vectorisation():
    env = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync", data=records(), classifier=SumOfKnown())
    _, info = env.reset(seed=3)
    assert info["action_mask"].shape == (2, 4)
    single = AcquisitionEnv(records(), SumOfKnown())
    _, info = single.reset(options={"row": 2})  # b is recorded, c is not
    single.action_space.seed(0)
    assert {int(single.action_space.sample(info["action_mask"])) for _ in range(50)} == {1, 3}


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_returns_agree_with_true_cost_on_complete_data(synthetic, p):
    classifier, _, complete = synthetic
    policy = afape.RandomSubset(p)
    cost = -rollout(AcquisitionVectorEnv(complete, classifier, 5_000), policy, 30_000, random_state=1)
    truth = afape.true_cost(complete, policy, classifier)["total"].value
    assert abs(cost.mean() - truth) < 4 * cost.std() / np.sqrt(len(cost))


@pytest.mark.parametrize("policy", [afape.RandomSubset(0.6), afape.AcquireAll()], ids=repr)
def test_returns_agree_with_blocking_on_records(synthetic, policy):
    classifier, gaps, _ = synthetic
    cost = -rollout(AcquisitionVectorEnv(gaps, classifier, 5_000), policy, 30_000, random_state=2)
    result = afape.evaluate(gaps, policy, classifier, missingness=afape.MAR(given=["x0"]), estimators=["blocking"])
    assert abs(cost.mean() - result["blocking"]["total"].value) < 4 * cost.std() / np.sqrt(len(cost))


def test_every_episode_of_the_single_environment_pays_what_the_walk_says(synthetic):
    classifier, gaps, _ = synthetic
    rule = afape.agents.Guideline("x1 if X0 < 0, then x2 if X1 > 0").bind(gaps.problem)
    env = AcquisitionEnv(gaps, classifier)
    total = 0.0
    for row in range(100):
        _, info = env.reset(options={"row": row})
        ended = False
        while not ended:
            p = rule.probabilities(env.episodes.values, env.episodes.acquired)
            _, reward, ended, _, info = env.step(int(p[0].argmax()))
            total -= reward
            assert info["row"] == row
    few = gaps.take(np.arange(100))
    result = afape.evaluate(
        few, afape.agents.Guideline("x1 if X0 < 0, then x2 if X1 > 0"), classifier,
        missingness=afape.MAR(given=["x0"]), estimators=["blocking"],
    )  # fmt: skip
    assert total / 100 == pytest.approx(result["blocking"]["total"].value, rel=1e-12)


def test_bad_input():
    data = records()
    with pytest.raises(ValueError, match=r"'data' must be given before an environment can be reset"):
        AcquisitionEnv().reset()
    with pytest.raises(ValueError, match=r"'data' must be given before an environment can be reset"):
        gymnasium.make(ID, classifier=SumOfKnown()).reset()
    with pytest.raises(ValueError, match=r"'data' must have rows"):
        AcquisitionEnv(data.take(np.array([], dtype=int)), SumOfKnown())
    with pytest.raises(TypeError, match=r"'data' must be an afape.Retrospective, not list"):
        AcquisitionEnv([1, 2], SumOfKnown())
    with pytest.raises(TypeError, match=r"'classifier' must have a method predict"):
        AcquisitionEnv(data)
    env = AcquisitionEnv(data, SumOfKnown())
    with pytest.raises(RuntimeError, match=r"No episode is running"):
        env.step(0)
    with pytest.raises(ValueError, match=r"options\['row'\] must be a row from 0 to 3, but is 4"):
        env.reset(options={"row": 4})
    env.reset(seed=0)
    for action in (4, -1, 0.5, [1]):
        with pytest.raises(ValueError, match=r"'action' must be a group index, or 3 to stop"):
            env.step(action)
    vector = AcquisitionVectorEnv(data, SumOfKnown(), 2)
    with pytest.raises(RuntimeError, match=r"No episode is running"):
        vector.step([3, 3])
    with pytest.raises(TypeError, match=r"'seed' must be one number"):
        vector.reset(seed=[1, 2])
    with pytest.raises(ValueError, match=r"'num_envs' must be a whole number of at least 1, but is 0"):
        AcquisitionVectorEnv(data, SumOfKnown(), 0)
    with pytest.raises(ValueError, match=r"'n_episodes' must be a whole number of at least 1, but is 0"):
        rollout(vector, afape.AcquireAll(), 0)
    with pytest.raises(TypeError, match=r"'env' must be an afape.gym.AcquisitionVectorEnv, not AcquisitionEnv"):
        rollout(env, afape.AcquireAll(), 5)


def test_without_gymnasium_the_message_names_the_extra():
    hidden = "import sys; sys.modules['gymnasium'] = None; import afape"
    code = f"{hidden}\ntry:\n    afape.gym\nexcept ImportError as error:\n    print(error)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'afape[agents]'" in told


def test_afape_imports_without_the_extras():
    names = "gymnasium torch stable_baselines3 sb3_contrib skops"
    code = f"import sys, afape, afape.agents; print([n for n in '{names}'.split() if n in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"


def test_episodes_run_on_rows_in_proportion_to_their_weights():
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0, [0, 1])
    table = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 1.0, 1.0], "y": [0, 1, 1], "w": [1, 2, 7]})
    data = afape.Retrospective(table, problem, weight="w")
    env = AcquisitionVectorEnv(data, SumOfKnown(), 2000)
    env.reset(seed=0)
    shares = np.bincount(env.episodes.row, minlength=3) / 2000
    assert abs(shares - [0.1, 0.2, 0.7]).max() < 4 * np.sqrt(0.25 / 2000)
    one = AcquisitionEnv(data, SumOfKnown())
    rows = [one.reset(seed=k)[1]["row"] for k in range(300)]
    assert abs(np.mean(np.array(rows) == 2) - 0.7) < 4 * np.sqrt(0.21 / 300)
    returns = rollout(env, afape.AcquireAll(), 4000)
    truth = afape.true_cost(data, afape.AcquireAll(), SumOfKnown())["total"].value
    assert abs(-returns.mean() - truth) < 4 * returns.std() / np.sqrt(4000)
