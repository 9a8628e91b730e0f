"""Models and imputations from tables with levels in groups."""

import numpy as np

import dpcipher as dc

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "integer", "min": 0, "max": 7},
            "ill": {"kind": "categorical", "levels": ["no", "yes"]},
        }
    }
)
ROWS = np.stack(
    [np.array([900, 800, 700, 600, 500, 400, 300, 200]), np.array([80, 110, 130, 160, 190, 210, 240, 260])],
    axis=1,
)
FINE = {("age",): ROWS.sum(axis=1), ("age", "ill"): ROWS}
GROUPED = {("age",): ROWS.sum(axis=1), ("age", "ill"): ROWS.reshape(4, 2, 2).sum(axis=1)}


def _release(tables: dict, **groups: object) -> dc.Release:
    return dc.Release.from_tables(
        tables, SCHEMA, scale=6.0, mechanism="gaussian", groups={("age", "ill"): groups} if groups else None
    )


def test_a_slope_over_ages_in_groups_is_that_over_single_years_and_less_certain() -> None:
    """Ages by illness in four groups beside single years: nearly the same odds ratio as from every year, with a wider interval."""
    fine = dc.fit_models(_release(FINE), "ill ~ age", seed=1)
    grouped = dc.fit_models(_release(GROUPED, age=[0, 2, 4, 6]), "ill ~ age", seed=1)
    slopes = [float(one.frame.set_index("term").loc["age", "estimate"]) for one in (fine, grouped)]
    widths = [
        float(np.diff(one.frame.set_index("term").loc["age", ["low", "high"]].astype(float))[0])
        for one in (fine, grouped)
    ]
    assert abs(slopes[1] - slopes[0]) < 0.5 * widths[1]
    assert widths[1] > 0.95 * widths[0]


def test_imputations_keep_to_the_groups_that_were_counted() -> None:
    """Draws differ inside groups, where nothing was counted by illness, more than over whole groups."""
    joints = dc.solve(_release(GROUPED, age=[0, 2, 4, 6]), draws=30, seed=2)
    shares = np.stack([np.asarray(joint.project(("age", "ill")), dtype=float) for joint in joints])
    ill = shares[:, :, 1] / shares.sum(axis=(1, 2))[:, None] * ROWS.sum()
    groups = ill.reshape(30, 4, 2).sum(axis=2)
    assert np.abs(groups.mean(axis=0) - GROUPED["age", "ill"][:, 1]).max() < 15
    assert groups.std(axis=0).mean() < 15
    assert ill.std(axis=0).mean() > 1.5 * groups.std(axis=0).mean()
