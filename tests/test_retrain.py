"""The chapters' parameters ``retrain`` and ``quick``, with real trainings: the slowest tests of the book."""

import papermill
import pytest
import torch

from howattend import files, notebooks, runs


def test_retraining_really_trains(monkeypatch):
    """No shipped weights are read, the weights are others, and the network is as good."""
    name = "one_to_one-ao-gru"
    shipped = runs.load(name)

    def refuse(path, *arguments):
        raise AssertionError(f"a retraining read {path}")

    with monkeypatch.context() as guard:
        guard.setattr(runs, "load", refuse)
        guard.setattr(runs, "manifest", refuse)
        guard.setattr(files, "load_tensors", refuse)
        run = runs.obtain([name], retrain=True, seed=1)[name]
        assert run.accuracy >= runs.config(name).accuracy_bar
    assert run.seed == 1
    assert run.comparable
    for key, value in run.model.state_dict().items():
        if key != "readout_bias":  # which begins at zero with every seed
            assert not torch.allclose(value, shipped.state_dict()[key], atol=1e-3)


@pytest.mark.parametrize(("chapter", "verdicts"), [("one-to-one", 21), ("sort", 1)])
def test_a_quick_chapter_marks_its_claims(root, tmp_path, chapter, verdicts):
    """Every network is trained shortly, and every verdict says that it is not comparable."""
    source, result = root / "book" / f"{chapter}.ipynb", tmp_path / "quick.ipynb"
    papermill.execute_notebook(source, result, {"quick": True}, cwd=root / "book", progress_bar=False)
    cells = {cell.id: cell for cell in notebooks.read(result).cells}
    lines = cells["claims"].outputs[0].data["text/plain"].splitlines()[1:]
    found = [line.rsplit(" | ", 1)[1] for line in lines if line.startswith("  ")]
    assert len(found) >= verdicts
    assert set(found) == {"not comparable (a quick training, or below its accuracy bar)"}
    assert "networks trained here" in cells["ledger"].outputs[0].text
