"""The SUPPORT table: records with real gaps."""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec

import pandas as pd

from .public import PublicTable, read_public

__all__ = ["SUPPORT", "load_support"]

_IN_SURVSET = {
    "age": "num_age", "sex": "fac_sex", "disease": "fac_dzgroup", "comorbidities": "num_num_co",
    "hospital_day": "num_hday", "coma_score": "num_scoma", "mean_bp": "num_meanbp", "heart_rate": "num_hrt",
    "resp_rate": "num_resp", "temperature": "num_temp", "wbc": "num_wblc", "creatinine": "num_crea",
    "sodium": "num_sod", "pao2_fio2": "num_pafi", "arterial_ph": "num_ph", "albumin": "num_alb",
    "bilirubin": "num_bili", "glucose": "num_glucose", "bun": "num_bun", "urine": "num_urine",
}  # fmt: skip
_TEXTS = ("sex", "disease")
_DAYS = 180  # nobody was censored before day 344


def _in_survset() -> tuple[pd.DataFrame, str] | None:
    """Make the table from ``support2`` of the package ``SurvSet``: columns renamed, numbers rounded to five digits."""
    if find_spec("SurvSet") is None:
        return None
    from SurvSet.data import SurvLoader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the file was written with an older numpy
        found = SurvLoader().load_dataset("support2")["df"]
    columns = {
        own: found[name].astype(str) if own in _TEXTS else found[name].astype(float).map(_five_digits)
        for own, name in _IN_SURVSET.items()
    }
    died = (found["event"] == 1) & (found["time"] <= _DAYS)
    return pd.DataFrame({**columns, "died_180": died.astype(int)}), "support2 of SurvSet"


def _five_digits(value: float) -> float:
    return float(f"{value:.5g}")


SUPPORT = PublicTable(
    name="SUPPORT",
    files=("support2.csv", "support.csv"),
    package=("SurvSet", "data"),
    packaged=_in_survset,
    columns=(*_IN_SURVSET, "died_180"),
    n_rows=9_105,
    label="died_180",
    label_counts={"0": 4840, "1": 4265},
    sums={
        "age": 570_436,
        "comorbidities": 17_014,
        "hospital_day": 40_062,
        "coma_score": 109_781,
        "mean_bp": 769_710,
        "heart_rate": 884_515,
        "resp_rate": 212_399,
        "temperature": 337_788,
        "wbc": 109_808,
        "creatinine": 16_006,
        "sodium": 1_252_424,
        "pao2_fio2": 1_624_006,
        "arterial_ph": 50_580,
        "albumin": 16_915,
        "bilirubin": 16_614,
        "glucose": 736_217,
        "bun": 153_757,
        "urine": 9_298_730,
    },
    gaps={
        "coma_score": 1,
        "mean_bp": 1,
        "heart_rate": 1,
        "resp_rate": 1,
        "temperature": 1,
        "wbc": 212,
        "creatinine": 67,
        "sodium": 1,
        "pao2_fio2": 2_325,
        "arterial_ph": 2_284,
        "albumin": 3_372,
        "bilirubin": 2_601,
        "glucose": 4_500,
        "bun": 4_352,
        "urine": 4_862,
    },
)


def load_support(path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Critically ill adults in five hospitals of the USA, 1989 to 1994, with the gaps of the records (SUPPORT).

    Parameters
    ----------
    path : file or folder, optional
        The CSV file, or a folder with ``support2.csv`` or ``support.csv``. Default: the folder in the environment variable
        ``AFAPE_DATA``, else the table ``support2`` of the package ``SurvSet`` (extra ``data``).

    Returns
    -------
    DataFrame
        9,105 rows: label ``died_180`` (1: death within 180 days), sex and disease as texts, and 18 numeric columns.
        What was not measured is NaN.

    Notes
    -----
    Scores that the study derived, education, income, race, functional status and orders not to resuscitate are left out.
    Glucose, blood urea nitrogen (``bun``) and urine output were not collected in part of the study. One row has no coma
    score, another no vital signs and no sodium. The file is checked by its shape, its labels, the sums of its numeric columns
    and the number of their gaps. Other or incomplete files raise an error.

    References
    ----------
    W. A. Knaus et al., *The SUPPORT prognostic model* (Annals of Internal Medicine, 1995).
    """
    table = read_public(SUPPORT, path)
    numbers = [c for c in _IN_SURVSET if c not in _TEXTS]
    features = table[numbers].apply(pd.to_numeric, errors="coerce").astype(float)
    texts = table[list(_TEXTS)].astype(str).astype(object)
    label = table["died_180"].astype(int)
    found: pd.DataFrame = pd.concat([features, texts, label], axis=1)[list(SUPPORT.columns)]
    return found
