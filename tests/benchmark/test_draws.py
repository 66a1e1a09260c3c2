"""Draws: kept on disk, continued after an interruption, never mixed with those of another study."""

import pytest

from afape.benchmark.draws import OtherStudyError, run_draws


def test_a_killed_study_continues(tmp_path):
    calls = []

    def draw(k):
        calls.append(k)
        if k == 7 and len(calls) < 9:
            raise KeyboardInterrupt
        return [{"value": k}]

    with pytest.raises(KeyboardInterrupt):
        run_draws(draw, 10, tmp_path, "values", batch=2)
    assert calls == list(range(8))
    frame = run_draws(draw, 10, tmp_path, "values", batch=2)
    assert calls[8:] == [6, 7, 8, 9]
    assert frame["value"].tolist() == frame["draw"].tolist() == list(range(10))


def test_a_folder_of_another_study_is_refused(tmp_path):
    def draw(k):
        return [{"value": k}]

    assert len(run_draws(draw, 2, tmp_path, "one")) == len(run_draws(draw, 2, tmp_path, "one")) == 2
    with pytest.raises(OtherStudyError, match=r"holds draws of the study 'one; afape .*', not of 'other; afape"):
        run_draws(draw, 2, tmp_path, "other")
