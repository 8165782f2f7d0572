"""One small network of the sweep, trained again from nothing: its claims must lie where the recorded seeds say."""

import numpy as np
import pytest
from scipy import stats

from howattend import sweep
from howattend.sweep import work
from howattend.sweep.plan import REPEATED as NAME


@pytest.fixture(scope="module")
def recorded():
    """Its recorded rows, of all seeds."""
    table = sweep.read_rows([NAME])
    assert table["seed"].nunique() == 5, f"record its five seeds: python -m howattend sweep --only {NAME}"
    return table


def test_a_network_trained_again_lies_in_the_recorded_interval(recorded, monkeypatch, tmp_path):
    """Another processor adds up in another order, which training magnifies: such a network is as another seed would be.

    So each value must lie in the interval that the recorded seeds predict for one more of them, with 99.9 % confidence
    (there are many values), or be off by what rounding explains.
    """
    plan = sweep.full_plan()
    config = plan.by_name[NAME].candidates[0]
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    work.do(plan, sweep.Job(config, 0, NAME))
    assert sweep.read_runs().iloc[0]["config_hash"] == config.hash
    outside, again = {}, sweep.read_rows([NAME]).set_index(["claim", "quantity"])
    expected = recorded.groupby(["claim", "quantity"], sort=False)["value"].agg(["mean", "std", "count"])
    assert set(again.index) == set(expected.index)
    for key, row in expected.iterrows():
        half = stats.t.ppf(0.9995, row["count"] - 1) * row["std"] * np.sqrt(1 + 1 / row["count"])
        value = again.loc[key, "value"]
        if row["count"] and not abs(value - row["mean"]) <= half + 0.01 * abs(row["mean"]) + 1e-3:
            outside[key] = value, row["mean"], half
    assert not outside
