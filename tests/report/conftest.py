"""Pages that several tests look at."""

import numpy as np
import pytest
from report_records import records

import afape


@pytest.fixture(scope="session")
def comparison():
    classifier, data = records()
    policies = {
        "nothing": afape.AcquireNone(),
        "doubtful": afape.agents.from_columns(lambda row: np.where(abs(row["age"]) > 1, None, "lactate")),
        "everything": afape.AcquireAll(),
    }
    names = ["imp-mean", "blocking", "cc", "ipw-semi", "drl-semi"]
    return afape.compare(data, policies, classifier, missingness=afape.MAR(given=["age"]), estimators=names)


@pytest.fixture(scope="session")
def page(comparison, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    comparison.to_html(path, notes=["A note."], details={"command": "afape compare <b>"})
    return path
