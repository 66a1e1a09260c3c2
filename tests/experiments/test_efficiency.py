"""The study of the efficient estimator, in small."""

import numpy as np
import pandas as pd
import pytest

from afape.experiments.efficiency import _ratio, efficiency_study


@pytest.mark.slow
def test_the_study_writes_its_page_and_resumes(tmp_path):
    told = []
    found = efficiency_study(tmp_path, n_draws=2, sizes=(150,), progress=lambda done, todo: told.append((done, todo)))
    assert told == [(1, 2), (2, 2)]  # without a folder of real rows: synthetic and parabola
    assert set(found["estimator"]) == {"ipw-semi", "drl-semi", "eff-semi", "mi"}
    assert (found["draws"] == 4).all()  # never fewer
    assert (found["rmse"] >= found["bias"].abs() * (1 - 1e-9)).all()
    page = (tmp_path / "README.md").read_text()
    best = found[(found["target"] == "total") & (found["problem"] == "synthetic") & (found["policy"] == "Adaptive")]
    rmse = best.set_index("estimator")["rmse"]
    assert f"| synthetic | 150 | Adaptive | {rmse['eff-semi'] / rmse['ipw-semi']:.2f} ± " in page
    again = efficiency_study(tmp_path, n_draws=2, sizes=(150,))
    pd.testing.assert_frame_equal(found, again)  # times too: nothing was run again


def test_a_ratio_has_the_error_that_draws_show():
    """Spread of the ratio over repetitions of 60 draws beside the error that each of them claims."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        common = rng.normal(size=60)
        ours, theirs = (pd.Series((common + scale * rng.normal(size=60)) ** 2) for scale in (0.5, 1.0))
        found.append(_ratio(ours, theirs))
    ratios, errors = np.array(found).T
    assert abs(ratios.mean() - np.sqrt(1.25 / 2)) < 0.02
    assert abs(errors.mean() / ratios.std() - 1) < 0.12
    assert np.isnan(_ratio(ours * 0, theirs)).all()
