"""Models of Stable-Baselines3 and sb3-contrib trained on the environment, as policies."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sb3_contrib import MaskablePPO
from sklearn.linear_model import LogisticRegression
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import afape
from afape.agents.policy import ask_policy
from afape.agents.sb3 import from_sb3
from afape.benchmark.synthetic import synthetic_mar
from afape.gym.environment import AcquisitionEnv

KINDS = {
    "DQN": (DQN, {"learning_starts": 50, "train_freq": 4}),
    "MaskablePPO": (MaskablePPO, {"n_steps": 64, "batch_size": 64}),
    "PPO": (PPO, {"n_steps": 64, "batch_size": 64}),
    "A2C": (A2C, {}),
}


@pytest.fixture(scope="module")
def world():
    experiment = synthetic_mar(3_000)
    train, gaps = experiment.mechanism.hide(experiment.complete, 0).split([0.5, 0.5], 0)
    _, complete = experiment.complete.split([0.5, 0.5], 0)
    return afape.ImputedClassifier(LogisticRegression()).fit(train), gaps, complete


@pytest.fixture(scope="module")
def models(world):
    classifier, gaps, _ = world
    return {
        name: kind("MlpPolicy", AcquisitionEnv(gaps, classifier), seed=0, device="cpu", **arguments).learn(192)
        for name, (kind, arguments) in KINDS.items()
    }


def states(complete, rng, n=200):
    acquired = rng.random((n, 3)) < 0.5
    return np.where(acquired[:, complete.column_group], complete.values[:n], np.nan), acquired


@pytest.mark.parametrize("name", KINDS)
def test_trained_models_are_policies(world, models, name):
    classifier, gaps, complete = world
    policy = from_sb3(models[name])
    values, acquired = states(complete, np.random.default_rng(0))
    p = ask_policy(policy, values, acquired, np.arange(len(values)))
    assert (p.max(axis=1) < 1).any() == (name != "DQN")  # probabilities, not only actions, where the model has them
    cost = afape.true_cost(complete, policy, classifier)["total"].value
    assert 2 < cost < 8
    result = afape.evaluate(gaps, policy, classifier, missingness=afape.MAR(given=["x0"]), estimators=["ipw-semi"])
    assert np.isfinite(result["ipw-semi"]["total"].value)


def test_dqn_takes_the_action_that_the_library_takes(world, models):
    _, _, complete = world
    policy = from_sb3(models["DQN"])
    values, acquired = states(complete, np.random.default_rng(1))
    seen = np.column_stack([np.nan_to_num(values), acquired]).astype(np.float32)
    theirs, _ = models["DQN"].predict(seen, deterministic=True)
    open_ = np.column_stack([~acquired, np.ones(len(acquired), dtype=bool)])[np.arange(len(theirs)), theirs]
    assert open_.sum() > 20
    assert_array_equal(policy.probabilities(values, acquired).argmax(axis=1)[open_], theirs[open_])


def test_epsilon_spreads_over_what_is_left(world, models):
    _, _, complete = world
    values, acquired = states(complete, np.random.default_rng(2))
    greedy = from_sb3(models["DQN"]).probabilities(values, acquired)
    spread = from_sb3(models["DQN"], epsilon=0.3).probabilities(values, acquired)
    left = np.column_stack([~acquired, np.ones(len(acquired), dtype=bool)])
    assert_allclose(spread, 0.7 * greedy + 0.3 * left / left.sum(axis=1, keepdims=True), rtol=1e-12)


def test_maskable_ppo_gives_the_probabilities_of_the_library(world, models):
    _, _, complete = world
    values, acquired = states(complete, np.random.default_rng(3), n=50)
    model = models["MaskablePPO"]
    left = np.column_stack([~acquired, np.ones(len(acquired), dtype=bool)])
    seen = np.column_stack([np.nan_to_num(values), acquired]).astype(np.float32)
    with torch.no_grad():
        dist = model.policy.get_distribution(torch.as_tensor(seen), action_masks=left)
        log = torch.stack([dist.log_prob(torch.full((50,), a)) for a in range(4)], dim=1).numpy()
    p = from_sb3(model).probabilities(values, acquired)
    assert_allclose(p, np.exp(log), atol=1e-6)
    best = from_sb3(model, deterministic=True).probabilities(values, acquired)
    assert_array_equal(best.argmax(axis=1), p.argmax(axis=1))
    assert_array_equal(best.max(axis=1), 1.0)


def test_observations_are_normalised_as_in_training(world):
    classifier, gaps, complete = world
    env = VecNormalize(DummyVecEnv([lambda: AcquisitionEnv(gaps, classifier)]), norm_reward=False)
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu").learn(64)
    values, acquired = states(complete, np.random.default_rng(4), n=20)
    seen = env.normalize_obs(np.column_stack([np.nan_to_num(values), acquired]).astype(np.float32))
    with torch.no_grad():
        p = model.policy.get_distribution(torch.as_tensor(seen)).distribution.probs.numpy()
    p = np.where(np.column_stack([~acquired, np.ones(20, dtype=bool)]), p, 0.0)
    assert_allclose(from_sb3(model).probabilities(values, acquired), p / p.sum(axis=1, keepdims=True), rtol=1e-5)


def test_bad_input(models):
    with pytest.raises(TypeError, match=r"'model' must be a Stable-Baselines3 model, not int"):
        from_sb3(3)
    with pytest.raises(TypeError, match=r"must have a Q network or a distribution of actions, but SAC has neither"):
        from_sb3(SAC("MlpPolicy", "Pendulum-v1", device="cpu", buffer_size=10))
    with pytest.raises(ValueError, match=r"'epsilon' must lie in \[0, 1\], but is 1.5"):
        from_sb3(models["DQN"], epsilon=1.5)
    with pytest.raises(ValueError, match=r"'epsilon' must be 0 for PPO, which has its own probabilities"):
        from_sb3(models["PPO"], epsilon=0.1)
    with pytest.raises(TypeError, match=r"'deterministic' must be True or False, but is 1"):
        from_sb3(models["PPO"], deterministic=1)
    policy = from_sb3(models["DQN"])
    with pytest.raises(ValueError, match=r"observations of shape \(7,\), but these values and groups give \(8,\)"):
        policy.probabilities(np.zeros((1, 5)), np.zeros((1, 3), dtype=bool))
    two = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0)
    with pytest.raises(ValueError, match=r"trained with 3 groups, but the problem has 2"):
        policy.bind(two)
