"""Scikit-learn models that were read from a file: allowed types, and checks that their numbers fit together."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import StorageError
from .limits import checked_array

__all__ = ["check_content"]

# Models that predict with numpy alone, which checks shapes, or with trees, whose nodes are checked in stored_trees.py.
# Others, such as support vector machines and nearest neighbours, give arrays to compiled code that does not check them.
_ALLOWED = frozenset(
    """
    AdaBoostClassifier AdaBoostRegressor BernoulliNB CalibratedClassifierCV DecisionTreeClassifier DecisionTreeRegressor
    DummyClassifier DummyRegressor ElasticNet ElasticNetCV ExtraTreeClassifier ExtraTreeRegressor ExtraTreesClassifier
    ExtraTreesRegressor GaussianNB GradientBoostingClassifier GradientBoostingRegressor HistGradientBoostingClassifier
    HistGradientBoostingRegressor Lasso LassoCV LinearDiscriminantAnalysis LinearRegression LogisticRegression
    LogisticRegressionCV MLPClassifier MLPRegressor MaxAbsScaler MinMaxScaler MultinomialNB Perceptron Pipeline
    QuadraticDiscriminantAnalysis RandomForestClassifier RandomForestRegressor Ridge RidgeCV RidgeClassifier
    RidgeClassifierCV RobustScaler SGDClassifier SGDRegressor SimpleImputer StandardScaler VotingClassifier
    VotingRegressor
    """.split()  # noqa: SIM905
)
# Parts of these models.
_PARTS = frozenset(
    """
    AbsoluteError AdamOptimizer Bunch HalfBinomialLoss HalfMultinomialLoss HalfPoissonLoss HalfSquaredError Hinge
    IdentityLink Interval LabelBinarizer LabelEncoder Log LogLink LogitLink ModifiedHuber MultinomialLogit SGDOptimizer
    SquaredError SquaredHinge Tree TreePredictor _BinMapper _CalibratedClassifier _SigmoidCalibration CyAbsoluteError
    CyHalfBinomialLoss CyHalfMultinomialLoss CyHalfPoissonLoss CyHalfSquaredError
    """.split()  # noqa: SIM905
)
_NODES = frozenset(
    """
    BytesNode DTypeNode DictNode JsonNode ListNode LossNode NdArrayNode ObjectNode RandomGeneratorNode RandomStateNode
    SetNode SliceNode TreeNode TupleNode TypeNode
    """.split()  # noqa: SIM905
)
_BUILT_IN = ("builtins", "numpy", "collections")


def check_content(archive: zipfile.ZipFile, trusted: Sequence[str]) -> None:
    """Raise an error if a stored model has a type that is neither allowed nor trusted, or an array of a wrong size."""
    others = [name for name in archive.namelist() if name != "schema.json" and not name.endswith(".npy")]
    if others and not trusted:
        raise StorageError(f"The model in the file has data that cannot be checked: {others[0]!r}.")
    kinds = set(_kinds(json.loads(archive.read("schema.json"))))
    refused = sorted({name for name, node in kinds if name not in trusted and not _is_allowed(name, node)})
    if refused:
        raise StorageError(
            f"The model in the file has types that may be unsafe: {refused}. Compiled code uses their numbers unchecked, or they "
            f"are not of scikit-learn. If you trust the file, pass trusted={refused!r}."
        )
    for name in archive.namelist():
        if name.endswith(".npy"):
            checked_array(archive.read(name))


def _kinds(node: Any) -> Iterator[tuple[str, str]]:
    """Yield the full name of the type, and the kind of node, of everything in the schema."""
    if isinstance(node, dict):
        if "__class__" in node:
            yield f"{node.get('__module__')}.{node['__class__']}", str(node.get("__loader__"))
        inside: Any = node.values()
    else:
        inside = node if isinstance(node, list) else ()
    for each in inside:
        yield from _kinds(each)


def _is_allowed(name: str, node: str) -> bool:
    package, kind = name.split(".")[0], name.rsplit(".", 1)[-1]
    if node not in _NODES:
        return False
    if package == "_loss":  # what scikit-learn 1.5 calls its module of losses
        return node == "LossNode" and kind in _PARTS
    return package in _BUILT_IN if package != "sklearn" else kind in _ALLOWED or kind in _PARTS
