"""The study of the efficient estimator, with few draws."""

import numpy as np
import pandas as pd
import pytest
from studies.efficiency import efficiency_study, rmse_ratio


@pytest.mark.slow
def test_the_study_writes_its_page_and_resumes(tmp_path):
    steps = []
    options = {"n_draws": 2, "real_draws": 2, "sizes": (150,)}
    found = efficiency_study(tmp_path, **options, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 2), (2, 2)]  # without a folder of real rows: synthetic and parabola
    assert set(found["estimator"]) == {"ipw-semi", "drl-semi", "eff-semi", "mi"}
    assert (found["draws"] == 4).all()  # never fewer
    assert (found["rmse"] >= found["bias"].abs() * (1 - 1e-9)).all()
    page = (tmp_path / "README.md").read_text()
    best = found[(found["target"] == "total") & (found["problem"] == "synthetic") & (found["policy"] == "Adaptive")]
    rmse = best.set_index("estimator")["rmse"]
    assert f"| synthetic | 150 | Adaptive | {rmse['eff-semi'] / rmse['ipw-semi']:.2f} ± " in page
    again = efficiency_study(tmp_path, **options)
    pd.testing.assert_frame_equal(found, again)  # times too: nothing was run again


def test_a_ratio_has_the_error_that_draws_show():
    """The standard deviation of the ratio over repetitions of 60 draws equals its mean Monte Carlo error."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        common = rng.normal(size=60)
        ours, theirs = (pd.Series((common + scale * rng.normal(size=60)) ** 2) for scale in (0.5, 1.0))
        found.append(rmse_ratio(ours, theirs))
    ratios, errors = np.array(found).T
    assert abs(ratios.mean() - np.sqrt(1.25 / 2)) < 0.02
    assert abs(errors.mean() / ratios.std() - 1) < 0.12
    assert np.isnan(rmse_ratio(ours * 0, theirs)).all()
