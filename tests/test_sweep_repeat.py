"""One small network of the sweep, trained again from nothing: its claims must lie where the recorded seeds say."""

import numpy as np
import pytest
from scipy import stats

from howattend import sweep
from howattend.sweep import work

NAME = "one_to_one-ao-gru-steps1250"  # twenty seconds


@pytest.fixture(scope="module")
def recorded():
    """Its recorded rows, of all seeds."""
    table = sweep.read_rows([NAME])
    assert table["seed"].nunique() >= 3, f"record it: python -m howattend sweep --only {NAME}"
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
    outside = {}
    for (claim, quantity), value in sweep.read_rows([NAME]).set_index(["claim", "quantity"])["value"].items():
        values = recorded.query("claim == @claim and quantity == @quantity")["value"].to_numpy()
        if np.isnan(value) and np.isnan(values).all():
            continue
        half = stats.t.ppf(0.9995, len(values) - 1) * values.std(ddof=1) * np.sqrt(1 + 1 / len(values))
        if not abs(value - values.mean()) <= half + 0.01 * abs(values.mean()) + 1e-3:
            outside[claim, quantity] = value, values.tolist()
    assert not outside
