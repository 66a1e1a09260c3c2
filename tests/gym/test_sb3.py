"""Models of Stable-Baselines3 and sb3-contrib trained on the environment, as policies."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from gymnasium.wrappers import FlattenObservation, TransformReward
from numpy.testing import assert_allclose, assert_array_equal
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from sklearn.linear_model import LogisticRegression
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

import afape
from afape.agents.policy import ask_policy
from afape.agents.sb3 import from_sb3
from afape.benchmark.synthetic import synthetic_mar
from afape.gym.environment import AcquisitionEnv
from afape.gym.vector import AcquisitionVectorEnv

KINDS = {
    "DQN": (DQN, {"learning_starts": 50, "train_freq": 4}),
    "QRDQN": (QRDQN, {"learning_starts": 50, "train_freq": 4}),
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
    assert (p.max(axis=1) < 1).any() == ("DQN" not in name)  # probabilities, not only actions, where the model has them
    cost = afape.true_cost(complete, policy, classifier)["total"].value
    assert 2 < cost < 8
    result = afape.evaluate(gaps, policy, classifier, missingness=afape.MAR(given=["x0"]), estimators=["ipw-semi"])
    assert np.isfinite(result["ipw-semi"]["total"].value)


@pytest.mark.parametrize("name", ["DQN", "QRDQN"])
def test_a_q_network_takes_the_action_that_the_library_takes(world, models, name):
    _, _, complete = world
    policy = from_sb3(models[name])
    values, acquired = states(complete, np.random.default_rng(1))
    seen = np.column_stack([np.nan_to_num(values), acquired]).astype(np.float32)
    theirs, _ = models[name].predict(seen, deterministic=True)
    ended = ~np.column_stack([~acquired, np.ones(len(acquired), dtype=bool)])[np.arange(len(theirs)), theirs]
    assert 0 < ended.sum() < len(ended)
    assert_array_equal(policy.probabilities(values, acquired).argmax(axis=1), np.where(ended, 3, theirs))


def test_epsilon_spreads_over_all_actions_and_acquired_groups_stop(world, models):
    _, _, complete = world
    values, acquired = states(complete, np.random.default_rng(2))
    greedy = from_sb3(models["DQN"]).probabilities(values, acquired)
    spread = from_sb3(models["DQN"], epsilon=0.3).probabilities(values, acquired)
    random = np.column_stack([~acquired, 1 + acquired.sum(axis=1)]) / 4
    assert_allclose(spread, 0.7 * greedy + 0.3 * random, rtol=1e-12)


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


@pytest.mark.parametrize("name", ["PPO", "A2C"])
def test_models_without_masks_give_the_probabilities_of_the_library(world, models, name):
    _, _, complete = world
    values, acquired = states(complete, np.random.default_rng(6), n=50)
    seen = np.column_stack([np.nan_to_num(values), acquired]).astype(np.float32)
    with torch.no_grad():
        dist = models[name].policy.get_distribution(torch.as_tensor(seen))
        theirs = np.exp(torch.stack([dist.log_prob(torch.full((50,), a)) for a in range(4)], dim=1).numpy())
    p = from_sb3(models[name]).probabilities(values, acquired)
    assert_allclose(p[:, :3], np.where(acquired, 0.0, theirs[:, :3]), atol=1e-6)
    assert_allclose(p[:, 3], theirs[:, 3] + (theirs[:, :3] * acquired).sum(axis=1), atol=1e-6)
    best = from_sb3(models[name], deterministic=True).probabilities(values, acquired).argmax(axis=1)
    action, _ = models[name].predict(seen, deterministic=True)
    ended = np.column_stack([acquired, np.zeros(50, dtype=bool)])[np.arange(50), action]
    assert_array_equal(best, np.where(ended, 3, action))


def test_observations_are_normalised_as_in_training(world):
    classifier, gaps, complete = world
    env = VecNormalize(DummyVecEnv([lambda: AcquisitionEnv(gaps, classifier)]), norm_reward=False)
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu").learn(64)
    values, acquired = states(complete, np.random.default_rng(4), n=20)
    seen = env.normalize_obs(np.column_stack([np.nan_to_num(values), acquired]).astype(np.float32))
    with torch.no_grad():
        p = model.policy.get_distribution(torch.as_tensor(seen)).distribution.probs.numpy()
    p[:, 3] += (p[:, :3] * acquired).sum(axis=1)
    p[:, :3][acquired] = 0
    assert_allclose(from_sb3(model).probabilities(values, acquired), p, rtol=1e-5)
    assert abs(from_sb3(model, observe="plain").probabilities(values, acquired) - p).max() > 1e-3
    given = from_sb3(model, observe=env.normalize_obs)
    assert_array_equal(given.probabilities(values, acquired), from_sb3(model).probabilities(values, acquired))


def problem(seed):
    costs = [{"x1": 1.0, "x2": 0.5}, {"x1": 0.3, "x2": 4.0}, {"x1": 2.0, "x2": 2.0}][seed]
    error = [5.0, 20.0, 9.0][seed]
    return afape.Problem({"x0": ["x0"], "x1": ["x1"], "x2": ["x2"]}, costs, "y", error)


class Threshold:
    """Predicts from the sum of what is known."""

    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)


def complete_rows(seed, n=300):
    """Three problems: other prices, other costs of errors, other rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    frame = pd.DataFrame(x, columns=["x0", "x1", "x2"]).assign(y=(x @ [1.0, 2.0 - seed, 1.0 + seed] > 0).astype(int))
    return afape.Retrospective(frame, problem(seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", KINDS)
def test_rollouts_cost_what_true_cost_says(name, seed):
    kind, arguments = KINDS[name]
    data = complete_rows(seed)
    model = kind("MlpPolicy", AcquisitionEnv(data, Threshold()), seed=seed, device="cpu", **arguments).learn(128)
    env = AcquisitionVectorEnv(data, Threshold(), 3000)
    env.reset(seed=seed)
    env.episodes.start(np.arange(3000), np.tile(np.arange(300), 10))  # every row ten times: only actions are drawn
    seen, mask = env.episodes.observe(), env.action_masks()
    total, running = np.zeros(3000), np.ones(3000, dtype=bool)
    torch.manual_seed(seed)
    while running.any():
        masks = {"action_masks": mask} if name == "MaskablePPO" else {}
        action, _ = model.predict(seen, deterministic="DQN" in name, **masks)
        seen, reward, ended, _, _ = env.step(np.asarray(action))
        mask = env.action_masks()
        total -= np.where(running, reward, 0.0)
        running &= ~ended
    truth = afape.true_cost(data, from_sb3(model), Threshold())["total"].value
    error = np.sqrt(total.reshape(10, 300).var(axis=0, ddof=1).sum() / 10) / 300
    assert abs(total.mean() - truth) < 4 * error + 1e-9


def test_learned_to_stop_by_choosing_an_acquired_group():
    """The policy that stops by choosing lactate again costs what it costs in its environment."""
    data = complete_rows(0)
    model = PPO("MlpPolicy", AcquisitionEnv(data, Threshold()), seed=0, device="cpu")
    with torch.no_grad():
        model.policy.action_net.weight.zero_()
        model.policy.action_net.bias.copy_(torch.tensor([-50.0, 50.0, 0.0, 0.0]))  # always x1, first and again
    cost = afape.true_cost(data, from_sb3(model), Threshold())
    assert cost["acquisition"].value == pytest.approx(1.0, abs=1e-9)


def test_a_model_from_a_file_needs_its_environment_and_answers_alike(models, world, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gym", None)  # saving looks for a library of this name and would find this folder
    classifier, gaps, complete = world
    values, acquired = states(complete, np.random.default_rng(5), n=20)
    for name, (kind, _) in KINDS.items():
        with (tmp_path / name).open("wb") as file:
            models[name].save(file)
        expected = from_sb3(models[name]).probabilities(values, acquired)
        with (tmp_path / name).open("rb") as file:
            bare = kind.load(file, device="cpu")
        with pytest.raises(ValueError, match=rf"{name} has none.*load\(path, env=env\), or say with 'observe'"):
            from_sb3(bare)
        with pytest.warns(afape.warnings.AssumedOrderWarning, match=r"groups \['x0', 'x1', 'x2'\] in this order"):
            plain = from_sb3(bare, observe="plain").bind(complete.problem)
        assert_array_equal(plain.probabilities(values, acquired), expected)
        with (tmp_path / name).open("rb") as file:
            loaded = kind.load(file, env=AcquisitionEnv(gaps, classifier), device="cpu")
        assert_array_equal(from_sb3(loaded).bind(complete.problem).probabilities(values, acquired), expected)
        with pytest.raises(ValueError, match=r"trained with the groups \['x0', 'x1', 'x2'\], but the problem has"):
            from_sb3(loaded).bind(
                afape.Problem({"x2": ["x2"], "x1": ["x1"], "x0": ["x0"]}, {"x1": 1.0, "x2": 0.5}, "y", 5.0)
            )


def test_wrappers_of_observations_are_refused_by_name():
    data = complete_rows(0)

    def model(wrapped, vector=lambda env: env):
        return PPO("MlpPolicy", vector(DummyVecEnv([lambda: wrapped])), n_steps=64, batch_size=64, device="cpu")

    env = AcquisitionEnv(data, Threshold())
    with pytest.raises(ValueError, match="trained through the wrapper FlattenObservation"):
        from_sb3(model(FlattenObservation(env)))
    with pytest.raises(ValueError, match="trained through the wrapper VecFrameStack"):
        from_sb3(model(env, lambda v: VecFrameStack(v, 2)))
    from_sb3(model(FlattenObservation(env)), observe="plain")
    harmless = model(TransformReward(env, lambda r: r / 10), lambda v: VecMonitor(VecNormalize(v)))
    assert len(from_sb3(harmless).observers) == 1
    with pytest.raises(ValueError, match="trained on CartPoleEnv"):
        from_sb3(PPO("MlpPolicy", "CartPole-v1", device="cpu"))


def test_recurrent_models_are_refused_by_name():
    with pytest.raises(TypeError, match="but RecurrentPPO also depends on earlier observations"):
        from_sb3(RecurrentPPO("MlpLstmPolicy", AcquisitionEnv(complete_rows(0), Threshold()), device="cpu"))


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
    with pytest.raises(TypeError, match=r"'observe' must be a function of observations, or 'plain', but is 'flat'"):
        from_sb3(models["PPO"], observe="flat")
    policy = from_sb3(models["DQN"])
    with pytest.raises(ValueError, match=r"observations of shape \(7,\), but these values and groups give \(8,\)"):
        policy.probabilities(np.zeros((1, 5)), np.zeros((1, 3), dtype=bool))
    two = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0)
    with pytest.raises(ValueError, match=r"trained with 3 groups, but the problem has 2"):
        policy.bind(two)
