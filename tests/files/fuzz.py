"""Load forged and damaged model files: ``python tests/files/fuzz.py --inputs 2000``. Each must load or be refused.

A batch of inputs runs in a process of its own, with limited memory, so that a crash is seen.
"""

import argparse
import contextlib
import io
import json
import resource
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import afape
from afape import agents
from afape.files import StorageError

MEMORY = 3 * 2**30  # bytes that a process may have


def originals(folder):
    """Save some agents and classifiers; return their files."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=(x.sum(axis=1) > 0).astype(int))
    problem = afape.Problem({g: [g] for g in "abc"}, {"b": 1.0, "c": 2.0}, "y", 10.0)
    data = afape.Retrospective(frame, problem)
    models = [
        make_pipeline(StandardScaler(), LogisticRegression()),
        DecisionTreeClassifier(max_depth=3),
        RandomForestClassifier(2, max_depth=3),
        GradientBoostingClassifier(n_estimators=2),
        HistGradientBoostingClassifier(max_iter=2),
        GaussianNB(),
        SVC(),
    ]
    things = [afape.ImputedClassifier(model).fit(data) for model in models]
    judge = things[0]
    learned = (agents.ClusterAgent(4), agents.CostSensitiveNaiveBayes(), agents.CostSensitiveTree())
    things += [agent.fit(data, judge) for agent in (*learned, agents.ValueOfInformation(2), agents.LookAhead(2, 2))]
    things += [agents.FittedQ(n_iterations=1, max_states=50).fit(data, judge), afape.FixedOrder(["b", "c"])]
    for k, thing in enumerate(things):
        afape.save(thing, folder / f"{k}.afape", problem)
    return sorted(folder.glob("*.afape")), data


def mutated(content, rng):
    """Change one thing: bytes, an entry, a number of the JSON, the header or the values of an array; also in inner zips."""
    if rng.random() < 0.15:
        return damaged(content, rng)
    archive = zipfile.ZipFile(io.BytesIO(content))
    entries = {name: archive.read(name) for name in archive.namelist()}
    name = str(rng.choice(list(entries)))
    entries[name] = changed(name, entries[name], rng)
    if rng.random() < 0.05:
        entries.pop(name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for key, value in entries.items():
            new.writestr(key, value)
    return out.getvalue()


def changed(name, content, rng):
    """Return another content of this entry."""
    if name.endswith((".skops", ".afape")):
        return mutated(content, rng)
    if name.endswith(".json"):
        return changed_json(content, rng)
    if name.endswith(".npy") and rng.random() < 0.8:
        array = np.load(io.BytesIO(content), allow_pickle=False)
        out = io.BytesIO()
        np.save(out, changed_array(array, rng))
        return out.getvalue()
    return damaged(content, rng)


def damaged(content, rng):
    """Cut the bytes, or overwrite or repeat some."""
    data = bytearray(content or b"x")
    place, kind = int(rng.integers(len(data))), rng.integers(4)
    if kind == 0:
        return bytes(data[:place])
    if kind == 1:
        return bytes(data[:place] + data[place : place + 40] * 3 + data[place:])
    for k in rng.integers(len(data), size=int(rng.integers(1, 20))):
        data[k] = int(rng.integers(256))
    return bytes(data) if kind == 2 else bytes([*data[:place], *b"[" * 100_000])


def changed_array(array, rng):
    """Give an array another shape, type, length or other values."""
    kind = rng.integers(6)
    if kind == 0 and array.size and array.dtype.names:
        array, field = array.copy(), str(rng.choice(array.dtype.names))
        array[field][int(rng.integers(len(array)))] = rng.choice([0, 1, 10**6, 2**31 - 1])
        return array
    if kind == 1 and array.ndim:
        return array[: int(rng.integers(len(array) + 1))]
    if kind == 2 and array.ndim:
        return np.concatenate([array, array, array])
    if kind == 3:
        return array.reshape(-1)
    if kind == 4 and array.dtype.kind in "iuf":
        return array.astype(rng.choice([np.int8, np.float32, np.int64, np.float64, np.complex128]))
    if array.size and array.dtype.kind in "iuf":
        array = array.copy()
        array.reshape(-1)[int(rng.integers(array.size))] = rng.choice([0, 1, -1, 10**6, 2**31 - 1]).astype(array.dtype)
    return array


def changed_json(content, rng):
    """Change one value somewhere in a JSON text."""
    tree = json.loads(content)
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    walk(tree)
    node, key = places[int(rng.integers(len(places)))]
    others = [places[int(rng.integers(len(places)))] for _ in range(2)]
    values = [0, -1, 10**9, 1e308, None, "", [], {}, "sklearn.svm._classes", *(other[k] for other, k in others)]
    node[key] = values[int(rng.integers(len(values)))]
    return json.dumps(tree, default=str).encode()


def run(seed, inputs):
    """Load inputs and use what is loaded; print a line for each error that is not a `StorageError`."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    rng, loaded, refused = np.random.default_rng(seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, data = originals(folder)
        acquired = rng.random((20, 3)) < 0.5
        values = np.where(acquired, data.values[:20], np.nan)
        for k in range(inputs):
            (folder / "forged").write_bytes(mutated(files[int(rng.integers(len(files)))].read_bytes(), rng))
            try:
                thing = afape.load(folder / "forged", check_versions=False)
            except StorageError:
                refused += 1
                continue
            except Exception as error:
                print(f"seed {seed}, input {k}: {type(error).__name__}: {error}", flush=True)
                continue
            loaded += 1
            for method in ("probabilities", "predict"):
                with contextlib.suppress(Exception):  # an error is no harm
                    getattr(thing, method, lambda *_: None)(values, acquired)
    print(f"seed {seed}: {inputs} inputs, {loaded} loaded, {refused} refused", flush=True)


def main():
    """Run all inputs in batches; exit with 1 if one crashed or escaped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int)
    options = parser.parse_args()
    if options.batch is not None:
        run(options.seed, options.batch)
        return 0
    bad = False
    for start in range(0, options.inputs, 500):
        size = min(500, options.inputs - start)
        command = [sys.executable, __file__, "--seed", str(options.seed + start), "--batch", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout, end="")
        if done.returncode:
            print(f"seed {options.seed + start}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        bad |= done.returncode != 0 or ", input " in done.stdout
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
