"""The study of the efficient estimator, in small."""

import pandas as pd
import pytest

from afape.experiments.efficiency import efficiency_study


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
    assert f"| synthetic | 150 | Adaptive | {rmse['eff-semi'] / rmse['ipw-semi']:.2f} |" in page
    again = efficiency_study(tmp_path, n_draws=2, sizes=(150,))
    pd.testing.assert_frame_equal(found, again)  # times too: nothing was run again
