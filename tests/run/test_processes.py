"""Worker processes: as many as tasks, and none that outlives its parent."""

import os
import signal
import subprocess
import sys
import time

import pytest

from afape._processes import in_processes, locked
from afape.benchmark.draws import run_draws
from afape.benchmark.manifest import OtherExperimentError, only_run
from afape.walk import table
from afape.warnings import AfapeWarning

SCRIPT = """
import os, sys, time
from afape._processes import in_processes
def work(k):
    print(os.getpid(), flush=True)
    time.sleep(60)
list(in_processes(work, [(k,) for k in range(2)], 1000))
"""


def own_process(k):
    time.sleep(0.2)
    return os.getpid()


def test_there_are_no_more_processes_than_tasks():
    assert len(set(in_processes(own_process, [(k,) for k in range(2)], 1000))) <= 2
    assert list(in_processes(own_process, [], 1000)) == []


@pytest.mark.slow
def test_processes_end_with_their_parent():
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 10
    while time.monotonic() < end and any(_alive(pid) for pid in workers):
        time.sleep(0.2)
    assert not any(_alive(pid) for pid in workers)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_two_runs_in_one_folder_exclude_each_other(tmp_path):
    other = pytest.raises(OtherExperimentError, match=f"another run: process {os.getpid()} on")
    with only_run(tmp_path), other, only_run(tmp_path):
        pass
    with only_run(tmp_path):
        pass


def test_folders_of_dead_owners_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(table, "_NEW", -1.0)
    dead, alive = tmp_path / "afape-walk-dead", tmp_path / "afape-walk-alive"
    for folder in (dead, alive):
        folder.mkdir()
        (folder / "owner").touch()
    lock = locked(alive / "owner")
    mine = table._Folder()
    assert not dead.exists()
    assert alive.exists()
    assert mine.path.exists()
    lock.close()


def test_damaged_batches_are_reported_and_computed_again(tmp_path):
    whole = run_draws(lambda k: [{"x": k}], 3, tmp_path, "study", batch=1)
    (tmp_path / "draws-000001-000002.csv").write_text("")
    (tmp_path / "study.txt").write_text("")
    with pytest.warns(AfapeWarning, match="is damaged"):
        again = run_draws(lambda k: [{"x": k}], 3, tmp_path, "study", batch=1)
    assert again.equals(whole)
