"""Objects that follow the published protocol of AFABench, and its evaluation loop: one row at a time, the slow way."""

import numpy as np
import torch
from torch import nn

N_FEATURES, N_CLASSES = 5, 3


class Dataset:
    """Normal features that shift with the label; one-hot labels; prices that differ."""

    def __init__(self, n=120, seed=0, shape=(N_FEATURES,)):
        rng = np.random.default_rng(seed)
        y = rng.integers(N_CLASSES, size=n)
        x = rng.normal(size=(n, N_FEATURES)) + 1.5 * (y[:, None] == np.arange(N_FEATURES) % N_CLASSES)
        self.features = torch.as_tensor(x, dtype=torch.float32).reshape(n, *shape)
        self.labels = nn.functional.one_hot(torch.as_tensor(y), N_CLASSES).float()
        self.costs = torch.as_tensor(rng.uniform(0.2, 1.0, size=shape), dtype=torch.float32)

    def get_all_data(self):
        return self.features, self.labels

    def get_feature_acquisition_costs(self):
        return self.costs


class Pairs:
    """An unmasker: selection 0 reveals features 0 and 3, selection 1 feature 4, selection 2 features 1 and 2."""

    held = ((0, 3), (4,), (1, 2))

    def get_n_selections(self, feature_shape):
        return len(self.held)

    def get_selection_costs(self, feature_costs):
        return torch.stack([feature_costs[list(own)].sum() for own in self.held])

    def unmask(self, masked_features, feature_mask, features, afa_selection, selection_mask, label, feature_shape):
        out = feature_mask.clone()
        for i, k in enumerate(afa_selection[:, 0].tolist()):
            out[i, list(self.held[k])] = True
        return out


class Start:
    """An initializer that shows the same features in every row."""

    def __init__(self, *features):
        self.features = list(features)

    def initialize(self, features, label=None, feature_shape=None):
        mask = torch.zeros(features.shape, dtype=torch.bool)
        mask[:, self.features] = True
        return mask


def network(n_in, n_out, seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(n_in, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, n_out)).eval()


class Greedy:
    """Selects by a network, open selections only; stops if its classifier is sure (entropy below a threshold)."""

    has_builtin_classifier = True

    def __init__(self, seed=0, threshold=1.04, n_selections=N_FEATURES):
        self.selector = network(2 * N_FEATURES, n_selections, seed)
        self.predictor = network(2 * N_FEATURES, N_CLASSES, seed + 1)
        self.threshold = threshold

    def set_cost_param(self, cost_param):
        self.threshold = cost_param

    def predict(self, masked_features, feature_mask, label=None, feature_shape=None):
        seen = torch.cat([masked_features.flatten(1), feature_mask.flatten(1).float()], dim=1)
        with torch.enable_grad():
            return self.predictor(seen).softmax(dim=-1)

    def act(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        p = self.predict(masked_features, feature_mask)
        entropy = -(p * p.log()).sum(dim=1)
        seen = torch.cat([masked_features.flatten(1), feature_mask.flatten(1).float()], dim=1)
        score = self.selector(seen) - 1e6 * selection_mask
        stop = (entropy < self.threshold) | (score.max(dim=1).values < -1e5)
        return torch.where(stop, 0, score.argmax(dim=1) + 1)[:, None]


class Static:
    """Selections in one order, with one classifier per number of features; refuses batches of several sizes."""

    order = (3, 0, 4, 1)

    def __init__(self, seed=0):
        self.predictors = [network(k, N_CLASSES, seed + k) for k in range(1, len(self.order) + 1)]

    def act(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        size = selection_mask.sum(dim=1)
        if not (size == size[0]).all():
            raise RuntimeError("mixed budgets in batch")
        k = int(size[0])
        choice = self.order[k] + 1 if k < len(self.order) else 0
        return torch.full((len(feature_mask), 1), choice)

    def predict(self, masked_features, feature_mask, label=None, feature_shape=None):
        size = feature_mask.sum(dim=1)
        if not (size == size[0]).all():
            raise RuntimeError("mixed budgets in batch")
        k = int(size[0])
        if k == 0:
            return torch.full((len(feature_mask), N_CLASSES), 1 / N_CLASSES)
        return self.predictors[k - 1](masked_features[:, list(self.order[:k])]).softmax(dim=-1)


class Drawing:
    """Draws an open selection or stops; says with which probabilities."""

    def __init__(self, seed=0):
        self.inner = network(2 * N_FEATURES, N_FEATURES + 1, seed)

    def action_probabilities(self, masked_features, feature_mask, selection_mask=None, label=None, feature_shape=None):
        logits = self.inner(torch.cat([masked_features, feature_mask.float()], dim=1))
        closed = torch.nn.functional.pad(selection_mask, (1, 0))
        return logits.masked_fill(closed, -torch.inf).softmax(dim=-1)

    def act(self, **given):
        return torch.multinomial(self.action_probabilities(**given), 1)


def evaluated(method, dataset, predict, unmasker=None, initial=(), hard_budget=None, n_runs=1):
    """Mean paid prices and share of errors, as AFABench computes them, and the steps of every row."""
    features, labels = dataset.get_all_data()
    each = dataset.get_feature_acquisition_costs()
    held = [(j,) for j in range(N_FEATURES)] if unmasker is None else unmasker.held
    prices = (each if unmasker is None else unmasker.get_selection_costs(each)).tolist()
    paid, wrong, steps = [], [], []
    for i in [i for i in range(len(features)) for _ in range(n_runs)]:
        mask, selected = torch.zeros(1, N_FEATURES, dtype=torch.bool), torch.zeros(1, len(held), dtype=torch.bool)
        mask[0, list(initial)] = True
        spent, stopped = 0.0, False
        while not stopped:
            seen = {"masked_features": torch.where(mask, features[i : i + 1], 0.0), "feature_mask": mask}
            shape = torch.Size([N_FEATURES])
            with torch.no_grad():
                action = int(method.act(**seen, selection_mask=selected, label=None, feature_shape=shape)[0, 0])
                predicted = int(predict(**seen, label=None, feature_shape=shape).argmax())
            forced = action > 0 and hard_budget is not None and spent + prices[action - 1] > hard_budget
            action = 0 if forced else action
            before = [k for k in range(len(held)) if selected[0, k]]
            if action:
                spent += prices[action - 1]
                selected, mask = selected.clone(), mask.clone()
                selected[0, action - 1], mask[0, list(held[action - 1])] = True, True
            stopped = action == 0
            steps.append((i, sorted(before), action, predicted, spent, forced))
        paid.append(spent)
        wrong.append(predicted != int(labels[i].argmax()))
    return np.array(paid), np.array(wrong), steps
