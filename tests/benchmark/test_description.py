"""Descriptions of experiments: those of the paper are valid, and every mistake has its message."""

import pytest
from small import TOML, write_small

from afape.benchmark.description import read_description
from afape.benchmark.paper_experiments import EXPERIMENTS, UnknownExperimentError, describe
from afape.benchmark.section import DescriptionError


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_papers_experiments_are_described(name, quick):
    found = read_description(describe(name), quick=quick)
    assert found.name == name
    assert found.runs
    assert found.figures
    assert (max(run.draws for run in found.runs) >= 20) is not quick


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UnknownExperimentError, match=r"synthetic-mar, .*income, or all.*'incone'.*mean 'income'"):
        describe("incone")


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('train = 0.3', 'train = 0.3\ntrian = 1', r"the top level has no key 'trian'. Did you mean 'train'\?"),
        ('train = 0.3', 'train = 1.5', "'train', the share of rows to train on, must lie between 0 and 1"),
        ('depth = 4', 'dept = 4', r"\[classifier\] has no key 'dept'. Did you mean 'depth'\?"),
        ('depth = 4', 'depth = "4"', "'depth' must be a whole number of at least 1, but is '4'"),
        ('file = "own.csv"', 'source = "iris"', r"'source' among \['synthetic', 'heloc', 'income'\]"),
        ('file = "own.csv"', '', "must have 'source', .* or 'file', but not both"),
        ('label = "died"', '', "must have a key 'label'"),
        ('costs = { cbc = 2.0, lactate = 1.0 }', 'costs = { xray = 2.0 }', r"\[problem\] does not describe a problem.*xray"),
        ('given = ["age"]', '', "must have 'given', .* or 'graph', but not both"),
        ('given = ["age"]', 'given = ["ages"]', "'given' must name groups of the problem .* but 'ages' is not one"),
        ('groups = ["cbc", "lactate"]', 'groups = ["cbc", "x"]', "'blocks' must name groups"),
        ('scales = { age = "standard" }', 'scales = { age = "log" }', "'scales' must map columns of 'weights'"),
        ('weights = { age = 1.0 }', 'weights = { age = "much" }', "'weights' must be a number"),
        ('together = false', 'together = 0', "'together' must be true or false"),
        ('rows = [120, 240]', 'rows = []', "'rows' must list whole numbers"),
        ('rows = [120, 240]', 'rows = [120, 0]', "'rows' must be a whole number"),
        ('draws = 5', 'draws = 5\nfrozen = 1', "'frozen' must be at least 2"),
        ('draws = 5', 'draws = 5\nacquisition_weight = "never"', "'acquisition_weight' must be among"),
        ('draws = 5', 'draws = 5\nfull = { row = [9] }', r"\[full\] has no key 'row'"),
        ('words = "It', 'targets = ["sum"]\nwords = "It', "'targets' must be among"),
        ('file = "own.csv"', 'file = "own.csv"\ncodes = "mean"', "'codes' is for the source heloc"),
        ('draws = 5', 'draws = 5\nvalues = "magic"', "'values' must be among"),
        ('draws = 5', 'draws = 5\nagents = ["nobody"]', "'agents' must be among"),
        ('kind = "convergence"', 'kind = "pie"', "'kind' must be among"),
        ('runs = ["small"]', 'runs = ["large"]', "'runs' must be among"),
        ('half = "random:0.5"', 'half = 0.5', "'agents' must be a table of texts"),
        ('[problem]', '[problem', "must be a TOML file"),
        ('quick = { rows = [120], draws = 2 }', 'quick = { row = [150] }', r"\[quick\] has no key 'row'"),
    ],
)  # fmt: skip
def test_every_mistake_has_its_message(tmp_path, old, new, match):
    assert TOML.count(old) >= 1
    with pytest.raises(DescriptionError, match=match):
        read_description(write_small(tmp_path, TOML.replace(old, new, 1)))


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(DescriptionError, match="There is no file"):
        read_description(tmp_path / "none.toml")


def test_the_fingerprint_covers_what_changes_numbers(tmp_path):
    one = read_description(write_small(tmp_path))
    assert one.reduced(3).fingerprint == one.fingerprint
    assert [run.draws for run in one.reduced(3).runs] == [3]
    words = read_description(write_small(tmp_path, TOML.replace("It is small.", "It is tiny.")))
    assert words.fingerprint == one.fingerprint
    other = read_description(write_small(tmp_path, TOML.replace("intercept = 0.5", "intercept = 0.6")))
    assert other.fingerprint != one.fingerprint
    assert read_description(write_small(tmp_path), quick=True).fingerprint != one.fingerprint


def test_full_sizes_replace_those_of_runs_that_state_them():
    usual, full = (read_description(describe("synthetic-mar"), full=full) for full in (False, True))
    assert [run.rows for run in full.runs if run.name == "all estimators"] == [(60_000,)]
    assert usual.fingerprint != full.fingerprint
    with pytest.raises(DescriptionError, match="'quick' and 'full' cannot both be true"):
        read_description(describe("heloc"), quick=True, full=True)
