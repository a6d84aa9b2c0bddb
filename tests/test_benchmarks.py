"""The benchmarks run, so they cannot rot; what they measure is not tested."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.skipif(not BENCHMARKS.exists(), reason="benchmarks are not part of the installed package")
def test_speed(tmp_path):
    command = [sys.executable, BENCHMARKS / "speed.py", "--quick", "--to", tmp_path / "speed"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    report = (tmp_path / "speed.md").read_text()
    for row in ("diag aic", "diag tic", "full aic", "exact optimal transport", "MaxSim", "per-pair loop"):
        assert f"| {row}" in report
    assert (tmp_path / "speed.png").stat().st_size > 10_000
