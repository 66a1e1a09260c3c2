"""Every public callable with its arguments, found from `__all__` and from signatures, and values that are wrong for them."""

import importlib
import inspect
import re
import traceback
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from good_input import frame
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import afape

MODULES = ("afape", *(f"afape.{room}" for room in afape._ROOMS if room not in ("results", "warnings")))
MODULES += ("afape.classifiers", "afape.results")
SOURCE = str(Path(afape.__file__).parent)

# What the library calls itself, with arrays or objects that it made and checked before.
ENGINE = frozenset(
    """
    action_values ask ask_root batches between bind checked codes completed conditioning cost_matrix ending_loss
    exploration from_state graph_on group_index impute keeping lookup n_endings of packed pairs_with posterior predict
    predict_proba probabilities reach reasons records rows seen stop_value superset units unpacked within without
    """.split()  # noqa: SIM905
)
# Results that the library makes, protocols, and helpers of its own; their methods are called like all others.
MADE = frozenset(
    """
    TrainedClassifier ask_classifier Bounds check_classifier check_columns check_not_training Classifier column_means
    BenchBundle BudgetCurve Comparison Description
    Estimate Evaluation Finished Frontier Identification Imputer MissingnessCheck Optimisation Parts Policy
    PricePlane ProblemFile Provenance Scan Sensitivity SetWeights Sites Summary Support Tipping ValueRegressor
    """.split()  # noqa: SIM905
)


class Callee(NamedTuple):
    """A public function, constructor, or method (with its class)."""

    name: str
    function: Any
    owner: Any = None

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Return the arguments that a user can name, without ``self``."""
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        found = inspect.signature(self.function).parameters
        return {name: p for name, p in found.items() if p.kind in named and name != "self"}


def public_callables() -> dict[str, Callee]:
    """Return every public callable by name, with the public methods of public classes."""
    found: dict[str, Callee] = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
                continue
            if name not in MADE:
                name = f"plots.{name}" if module is afape.plots else name
                found[name] = Callee(name, thing)
            for method, function in inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else ():
                ours = (getattr(function, "__module__", None) or "").startswith("afape")
                if ours and not method.startswith("_") and method not in ENGINE:
                    found[f"{name}.{method}"] = Callee(f"{name}.{method}", function, thing)
    return {name: callee for name, callee in found.items() if callee.parameters}


class Rude:
    """An object whose methods all raise an error."""

    def _raise(self, *_):
        raise RuntimeError("a rude object")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __bool__ = __float__ = __iter__ = __array__ = _raise


class RudeName(Rude):
    """A rude object that can be a key."""

    __hash__ = object.__hash__


class Anything:
    """A class that can be made of anything."""

    def __init__(self, *arguments, **named):
        pass


def TAKES_NOTHING():  # noqa: N802
    """A function that the library cannot call, because it always passes something."""


# One value for each way of being wrong; whether it is wrong for an argument follows from the annotation.
WRONG: dict[str, Any] = {
    "None": None,
    "True": True,
    "text": "nosuch",
    "empty text": "",
    "mathtext": "$x$ _{^ \x1b[31m",
    "bytes": b"abc",
    "zero": 0,
    "negative": -1,
    "huge": 10**400,
    "too many digits": 10**5000,
    "fraction": Fraction(1, 3),
    "half": 0.5,
    "1e300": 1e300,
    "decimal NaN": Decimal("sNaN"),
    "NaN": float("nan"),
    "infinite": float("inf"),
    "complex": 1j,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "object": object(),
    "rude object": Rude(),
    "function": lambda *arguments, **named: None,
    "function without arguments": TAKES_NOTHING,
    "dict to functions without arguments": {"b": TAKES_NOTHING},
    "class": Anything,
    "module": np,
    "pipeline": make_pipeline(LogisticRegression()),
    "regressor": LinearRegression(),
    "empty list": [],
    "numbers": [1, 2],
    "duplicates": ["b", "b"],
    "NaNs": [float("nan"), float("nan")],
    "NAs": [pd.NA, pd.NA],
    "nested list": [["b"], ["cd"]],
    "list of dicts": [{}],
    "list of arrays": [np.zeros(2), np.zeros(3)],
    "list of objects": [object()],
    "list of rude objects": [Rude()],
    "list of huge": [10**400],
    "set": {"b"},
    "set of numbers": {1.0, 2.0},
    "empty dict": {},
    "dict to numbers": {"b": 1.0},
    "dict to NaN": {"b": float("nan")},
    "dict to huge": {"b": 10**400},
    "dict to text": {"b": "cheap"},
    "dict to lists": {"b": [1, 2]},
    "dict to dicts": {"b": {"a": []}},
    "dict to unhashables": {"b": [[], {}]},
    "dict to arrays": {"b": np.array([1.0, 2.0])},
    "dict to objects": {"b": object()},
    "dict to rude objects": {"b": Rude()},
    "dict to None": {"b": None},
    "dict from numbers": {1.5: 1.0},
    "dict from tuples": {("b", 1): 1.0, (): 2.0},
    "dict from empty text": {"": 1.0},
    "dict to mappings to text": {"b": {"a": "x"}},
    "generator": (x for x in ()),
    "0-d array": np.array(1.5),
    "array": np.array([0.5, 1.5]),
    "matrix": np.ones((2, 3)),
    "array of objects": np.array([None, {}], dtype=object),
    "array of texts": np.array(["a", "b"]),
    "wrong length": np.zeros(7),
    "series": pd.Series([1.0, 2.0], name="s"),
    "table": frame(),
    "empty table": pd.DataFrame(),
    "date": pd.Timestamp("2020-01-01"),
    "range": range(3),
}
_PLAIN = {
    "bool": lambda v: isinstance(v, bool | np.bool_),
    "int": lambda v: isinstance(v, int | np.integer) and not isinstance(v, bool) and v < 10**18,
    "float": lambda v: isinstance(v, int | float | Fraction) and not isinstance(v, bool) and abs(v) < 1e301,
    "str": lambda v: isinstance(v, str),
    "Path": lambda v: isinstance(v, str) and v != "",
    "Sequence": lambda v: not isinstance(v, str | bytes | dict | int | float) and hasattr(v, "__iter__"),
    "Iterable": lambda v: not isinstance(v, str | bytes | dict | int | float) and hasattr(v, "__iter__"),
    "Mapping": lambda v: isinstance(v, dict),
    "dict": lambda v: isinstance(v, dict),
    "tuple": lambda v: isinstance(v, tuple | list),
    **dict.fromkeys(
        ["Callable", "Rule", "Function", "RootFunction", "Progress", "Tell"],
        lambda v: callable(v) and v is not TAKES_NOTHING,
    ),
    "Any": lambda v: True,
    "ArrayLike": lambda v: True,
    "NDArray": lambda v: True,
    "Floats": lambda v: True,
    "Bools": lambda v: True,
}


_FILE_ERRORS = (
    afape.files.StorageError,
    afape.files.TableError,
    afape.files.ProblemFileError,
    afape.benchmark.DescriptionError,
    afape.datasets.WrongTableError,
    afape.agents.GuidelineError,
)


def may_be_accepted(parameter: inspect.Parameter, value: Any) -> bool:
    """Return True if the annotation allows this type of value; other types must be refused."""
    text = str(parameter.annotation)
    while (outer := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = outer
    kinds = {kind.strip(" '").split(".")[-1] for kind in text.split("|")}
    if value is None:
        return "None" in kinds or "Any" in kinds
    if parameter.name in ("label", "cluster") and isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < 2**63  # pandas numbers unnamed columns
    if parameter.name == "random_state" and isinstance(value, int) and not isinstance(value, bool):
        return value >= 0
    return any(_PLAIN[kind](value) for kind in kinds if kind in _PLAIN)


def fault_of(argument: str, error: BaseException) -> str:
    """Return what is wrong with this refusal; an empty text if it is ours and names the argument."""
    if not isinstance(error, TypeError | ValueError | KeyError | FileNotFoundError | RuntimeError):
        return "raises another type of error"
    last = traceback.extract_tb(error.__traceback__)[-1]
    if not last.filename.startswith(SOURCE):
        return f"raised in {last.filename}:{last.lineno}"
    if isinstance(error, _FILE_ERRORS) or re.search("No estimator|too few to rank", str(error)):
        return ""  # names the file and what is wrong inside; names the estimator; ranks 40 rows
    if f"'{argument}'" not in str(error) and f"{argument}[" not in str(error):
        return "does not name the argument"
    return ""
