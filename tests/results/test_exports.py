"""Tables and appendix for papers, and the record of what a result was made from."""

import hashlib
import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_records import EVIL, bounded_comparison, records

import afape
from afape.data.checksum import checksum_of_records
from afape.report.facts import _FACTS
from afape.results.exports import CostTable
from afape.results.provenance import joined_provenance

POLICIES = {"all & more": afape.AcquireAll(), "=none": afape.AcquireNone()}


@pytest.fixture(scope="module")
def found():
    classifier, data = records()
    return afape.compare(
        data, POLICIES, classifier, missingness=afape.MAR(given=["age"]), estimators=["cc", "drl-semi"], random_state=3
    )


def markdown_cells(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if "---" not in line]


def test_a_markdown_table_has_the_numbers_of_the_result(found):
    cells = markdown_cells(found.to_markdown())
    assert cells[0] == ["policy", "acquisition", "misclassification", "total", "effective rows"]
    for line, (name, e) in zip(cells[1:], found.evaluations.items(), strict=True):
        assert line[0].replace("\\", "") == name
        low, high = e["drl-semi"]["total"].interval()
        value, lower, upper = map(float, re.fullmatch(r"(\S+) \((\S+) to (\S+)\)", line[3]).groups())
        np.testing.assert_allclose([value, lower, upper], [e["drl-semi"]["total"].value, low, high], atol=0.0501)
    assert "by drl-semi, with 95 % intervals; 630 rows" in found.to_markdown()


def test_several_estimators_have_a_line_each(found):
    assert [line[1] for line in markdown_cells(found.to_markdown(["cc", "drl-semi"]))[1:]] == ["cc", "drl-semi"] * 2
    assert [line[1] for line in markdown_cells(found["=none"].to_markdown())[1:]] == ["cc", "drl-semi"]
    with pytest.raises(KeyError, match="No estimator 'mi' here"):
        found.to_latex(["mi"])


def test_latex_escapes_names(found):
    text = found.to_latex()
    assert r"all \& more & " in text
    assert r"95 \% intervals" in text
    assert text.count(r"\\") == 3  # head and two policies
    odd = CostTable(("policy", "total"), (("a_b^c~{d}#$\\", "−1"),), "100 %", 1).latex()
    assert r"a\_b\textasciicircum{}c\textasciitilde{}\{d\}\#\$\textbackslash{} & $-$1" in odd


def test_bounds_say_that_they_are_bounds():
    text = bounded_comparison().to_markdown()
    assert re.search(r"\| all \|.*bounds \S+ to \S+ \(\S+ to \S+\)", text)


def test_a_workbook_has_all_tables_and_no_formulas(found, tmp_path):
    pytest.importorskip("openpyxl")
    found.to_excel(tmp_path / "all.xlsx")
    sheets = pd.read_excel(tmp_path / "all.xlsx", sheet_name=None)
    assert list(sheets) == [
        *("costs", "ranking", "differences", "acquisitions and errors", "metrics", "support", "provenance")
    ]
    assert set(sheets["costs"]["policy"]) == {"all & more", "'=none"}
    np.testing.assert_allclose(sheets["costs"]["estimate"], found.table["estimate"], rtol=1e-12)
    found["=none"].to_excel(tmp_path / "one.xlsx")
    assert len(pd.read_excel(tmp_path / "one.xlsx", sheet_name="costs")) == len(found["=none"].table)
    with pytest.raises(ValueError, match=r"'path' must end in \.xlsx"):
        found.to_excel(tmp_path / "all.csv")


def test_provenance_is_in_every_result(found):
    made = found.provenance
    assert made.seed == 3
    assert made.rows == 630
    assert made.options == {"estimators": "['cc', 'drl-semi']"}
    assert made.versions["afape"] == afape.__version__
    assert made.problem["groups"]["cbc"] == {"columns": ["cbc"], "price": 26.0}
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["provenance"] == plain["evaluations"]["=none"]["provenance"] == json.loads(json.dumps(made.to_dict()))


def test_parts_of_the_rows_have_one_record_together(found):
    one = found.provenance.to_dict()
    joined = joined_provenance([one, one], seed=5)
    assert (joined.rows, joined.seed, joined.problem) == (2 * 630, 5, one["problem"])
    assert joined.data not in (one["data"], joined_provenance([one], seed=5).data)
    assert joined_provenance([one, None], seed=5) is None


def test_the_checksum_tells_tables_apart():
    _, data = records(200)
    again = records(200)[1]
    assert checksum_of_records(data) == checksum_of_records(again)
    assert checksum_of_records(data) != checksum_of_records(data.take(np.arange(len(data))[::-1]))
    assert checksum_of_records(data) != checksum_of_records(data.with_weights(np.arange(1, len(data) + 1.0)))


def test_provenance_names_the_problem_file(tmp_path):
    file = tmp_path / "p.toml"
    text = 'label = "y"\nmisclassification_cost = 1\n[groups]\na = ["a"]\n[missingness]\nassumption = "MCAR"\n'
    file.write_text(text.replace('a = ["a"]', 'a = { columns = ["a"], price = 1 }'))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "y": np.arange(60) % 2})
    data = afape.read_problem(file).records(frame)

    class Zero:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    part = data.split([0.5, 0.5], random_state=0)[0]
    result = afape.evaluate(part, afape.AcquireNone(), Zero(), missingness=afape.MCAR(), estimators=["ipw-semi"])
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert result.provenance.problem_file == {"name": "p.toml", "sha256": digest}


def test_the_appendix_fills_in_what_it_knows_and_marks_the_rest(found, tmp_path):
    found.to_appendix(tmp_path / "a.md")
    text = (tmp_path / "a.md").read_text()
    items = re.findall(r"^### (\S+) ", text, re.MULTILINE)
    assert len(items) == 52 + 34
    assert len(set(items[:52])) == 52
    assert text.count("**Authors add:**") == len(items)
    for known in ("“all & more” and “=none”", "`MAR(given=['age'])`", "630 rows", "cbc 26", "sensitivity (yes)"):
        assert known in text, known
    assert "### 17 Ethical approval\n\n**Authors add:**" in text
    shares = re.findall(r"\| yes \| yes \| (\S+) %", text)
    expected = [100 * e.parts("drl-semi").confusion["yes", "yes"].value for e in found.evaluations.values()]
    np.testing.assert_allclose([float(s) for s in shares], expected, atol=0.051)


def test_every_fact_of_the_checklists_is_made_and_used():
    listed = tomllib.loads((files("afape.report") / "templates" / "checklists.toml").read_text())["guidelines"]
    assert [len(g["items"]) for g in listed] == [52, 34]
    used = {name for g in listed for item in g["items"] for name in item.get("facts", ())}
    assert used == set(_FACTS) | {"costs", "confusion"}


def test_the_appendix_of_one_policy_with_bounds_and_strange_names(tmp_path):
    classifier, data = records(300, evil=True)
    one = afape.evaluate(data, afape.AcquireNone(), classifier, missingness=afape.MCAR(), estimators=["ipw-semi"])
    one.to_appendix(tmp_path / "evil.md")
    assert EVIL not in (tmp_path / "evil.md").read_text()
    bounded_comparison().to_appendix(Path(tmp_path / "bounds.md"))
    assert "bounds " in (tmp_path / "bounds.md").read_text()
