"""A real cluster on this machine: blocks and joblib's work on workers of dask, one of which is killed."""

import os
import signal
import threading
import time
import warnings

import block_files
import joblib
import pandas as pd
import pytest

import afape
from afape._processes import in_processes

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    # the cluster's own threads and sockets end after it
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]

POLICIES = {"all": afape.AcquireAll(), "some": afape.RandomSubset(0.5)}
SETTINGS = {"missingness": block_files.MAR, "estimators": ["ipw-semi", "drl-semi"]}


@pytest.fixture(scope="module")
def client():
    # workers find the helpers of the tests as this process does
    os.environ["PYTHONPATH"] = os.pathsep.join(__import__("sys").path)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return block_files.written(block_files.frame(3000), tmp_path_factory.mktemp("records") / "files")


def compared(folder, **options):
    scan = afape.scan(folder, block_files.PROBLEM, block_rows=300, scratch=options.pop("scratch", None))
    return afape.compare(scan, POLICIES, block_files.Above(), **SETTINGS, **options)


def test_a_cluster_gives_the_same_bits_also_if_a_worker_is_killed(client, folder, tmp_path):
    expected, scratch = compared(folder).table, tmp_path / "scratch"
    found = compared(folder, executor=client.get_executor())
    pd.testing.assert_frame_equal(found.table, expected, check_exact=True)
    before = client.run(os.getpid)

    def kill():
        while not list(scratch.glob("results-*/block-*.summary")):
            time.sleep(0.01)
        os.kill(next(iter(before.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = compared(folder, executor=client.get_executor(), scratch=scratch)
    killer.join()
    pd.testing.assert_frame_equal(found.table, expected, check_exact=True)
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(before.values())
    assert not scratch.exists()


def process(_):
    return os.getpid()


def test_long_work_of_joblib_runs_on_the_cluster(client):
    with joblib.parallel_config(backend="dask"):
        used = set(in_processes(process, [(k,) for k in range(8)], 2))
    assert used <= set(client.run(os.getpid).values())
    data = afape.Retrospective(block_files.frame(600), block_files.PROBLEM)
    options = {"missingness": block_files.MAR, "estimators": ["ipw-semi"], "bootstrap": 8}
    alone = afape.evaluate(data, POLICIES["some"], block_files.Above(), **options)
    with joblib.parallel_config(backend="dask"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # large arguments
        found = afape.evaluate(data, POLICIES["some"], block_files.Above(), n_jobs=2, **options)
    ours, theirs = (e["ipw-semi"]["total"].replicates for e in (found, alone))
    assert ours.tolist() == theirs.tolist()
