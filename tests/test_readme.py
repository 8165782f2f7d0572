"""The README's Python runs as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"^```python\n(.+?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
#: A training in full takes minutes.
SHORTER = {
    "steps=1000": "steps=20",
    "model=replace(base.model, hidden_size=32)": "model=replace(base.model, hidden_size=32), "
    "train=replace(base.train, steps=20), accuracy_bar=0.0",
    "seeds=(0, 1, 2)": "seeds=(0,)",
}


def run(block: str, folder: Path) -> str:
    for whole, short in SHORTER.items():
        block = block.replace(whole, short)
    (folder / "own.py").write_text(block, encoding="utf-8")
    places = {"HOWATTEND_DATA": "again", "HOWATTEND_CACHE": "again/cache", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "own.py"],
        env=os.environ | places,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_it_runs(block, tmp_path):
    printed = run(block, tmp_path)
    if "sweep" in block:
        assert re.search(r"^-?\d\S+ \(1 seed\)$", printed, re.MULTILINE), printed
        assert (tmp_path / "again/results/sweep_runs.csv").is_file()
    elif "decompose(" in block:
        assert printed == "torch.Size([12, 64]) torch.Size([50, 64]) torch.Size([1000, 12, 64])\n"


def test_every_part_of_a_shorter_training_is_in_a_block():
    assert all(any(whole in block for block in BLOCKS) for whole in SHORTER)
