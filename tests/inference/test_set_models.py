"""Models over sets that were drawn from one release: the right rule by itself, also of joints and files, and what the notes say."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import ParameterError
from dpcipher.inference.combine import Combined, combine
from dpcipher.inference.models import Models
from dpcipher.schema import column

SCHEMA = dc.Schema(
    (
        column("sick", "boolean"),
        column("town", "categorical", levels=["north", "south", "east"], missing="level"),
        column("age", "integer", min=20, max=79, bins=3),
    )
)
COUNTS = np.array(
    [
        [[90, 70, 40], [80, 60, 50], [60, 60, 60], [10, 12, 11]],
        [[20, 40, 60], [10, 30, 60], [30, 40, 90], [5, 6, 7]],
    ]
)
RELEASE = dc.Release.from_tables({SCHEMA.attrs: COUNTS}, SCHEMA, scale=4.0)
FORMULA = "sick ~ town + age"


@pytest.fixture(scope="module")
def joints() -> list[dc.Joint]:
    """Four draws of the release."""
    return dc.solve(RELEASE, draws=4, seed=1)


def frames_of(joints: list[dc.Joint]) -> list[pd.DataFrame]:
    """A set of each without rows that miss a value, bins by their middle."""
    return [
        joint.sample(seed=number, values="middle").dropna(subset="town")
        for number, joint in enumerate(joints)
    ]


def rubin(models: Models) -> Combined:
    """The same fits, combined by hand."""
    return combine(models.estimates, models.variances, rule="imputations")


def test_frames_of_draws_bring_their_rule(joints: list[dc.Joint], tmp_path: Path) -> None:
    """As frames and as Parquet files; as CSV files they do not, and a note says which rule was taken and when another is right."""
    frames = frames_of(joints)
    for number, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{number}.parquet")
        frame.to_csv(tmp_path / f"{number}.csv", index=False)
    found = dc.fit_models(frames, FORMULA)
    assert np.array_equal(found.combined.variance, rubin(found).variance)
    read = [pd.read_parquet(tmp_path / f"{number}.parquet") for number in range(4)]
    assert np.allclose(dc.fit_models(read, FORMULA).combined.variance, found.combined.variance)
    texts = [pd.read_csv(tmp_path / f"{number}.csv") for number in range(4)]
    unknown, asked = dc.fit_models(texts, FORMULA), dc.fit_models(texts, FORMULA, rule="imputations")
    assert np.allclose(asked.combined.variance, found.combined.variance)
    assert (unknown.combined.variance < asked.combined.variance).all()
    assert any("need rule='imputations'" in note for note in unknown.notes)


def test_joints_are_fitted_as_their_sets_are(joints: list[dc.Joint]) -> None:
    """Two ways to the same rows up to rounding: by hand from samples, and by `fit_models`, which leaves out rows without a town."""
    by_hand, direct = dc.fit_models(frames_of(joints), FORMULA), dc.fit_models(joints, FORMULA, seed=1)
    assert direct.combined.rule == "imputations"
    assert [term for term in direct.terms if "town" in term] == ["town[T.south]", "town[T.east]"]
    reference = dict(zip(by_hand.terms, by_hand.combined.estimate, strict=True))  # whose towns are sorted
    age = direct.terms.index("age")
    assert direct.combined.estimate[age] == pytest.approx(
        reference["age"], abs=0.1 * direct.combined.std_error[age]
    )
    assert any("town were left out" in note for note in direct.notes)
    again = dc.fit_models(joints, FORMULA, seed=1)
    assert np.array_equal(again.estimates, direct.estimates)


def test_joints_agree_with_the_model_from_the_release(joints: list[dc.Joint]) -> None:
    """The same terms, and estimates within the error of a few draws."""
    whole = dc.fit_models(RELEASE, FORMULA, seed=2, unmeasured="none")
    drawn = dc.fit_models(dc.solve(RELEASE, draws=20, seed=3), FORMULA, seed=1)
    assert drawn.terms == whole.terms
    assert (np.abs(drawn.combined.estimate - whole.combined.estimate) < 0.5 * whole.combined.std_error).all()
    assert np.allclose(drawn.combined.std_error, whole.combined.std_error, rtol=0.35)
    flipped = dc.fit_models(joints, FORMULA, levels={"town": ["south", "north", "east"]}, seed=1)
    assert "town[T.north]" in flipped.terms


def test_sets_of_several_sanitizations_keep_the_paper_s_rule() -> None:
    """The joints of a release with m sets are no draws."""
    fits = [dc.solve(RELEASE, set=0), dc.solve(RELEASE, set=0)]
    assert dc.fit_models(fits, "sick ~ age", seed=1).combined.rule == "sanitizations"
    alone = dc.fit_models(fits[:1], "sick ~ age", seed=1)
    assert any("m = 1" in note for note in alone.notes)


def test_notes_say_what_sampling_did_to_the_rule(joints: list[dc.Joint]) -> None:
    """More rows, values drawn inside bins of a column of the model, and a rule that does not fit."""
    large = [joint.sample(5000, seed=1).dropna() for joint in joints]
    said = "\n".join(dc.fit_models(large, "sick ~ age").notes)
    assert "n_rows: " in said
    assert "age: these values were drawn inside bins" in said
    assert "bins" not in "\n".join(dc.fit_models(large, "sick ~ town").notes)
    wrong = dc.fit_models(large, "sick ~ town", rule="sanitizations")
    assert wrong.combined.rule == "sanitizations"
    assert any("does not fit them" in note for note in wrong.notes)
    one = dc.fit_models(large[0], "sick ~ town")
    assert any("m = 1" in note for note in one.notes)


def test_sets_of_two_kinds_are_refused_until_their_rule_is_said(joints: list[dc.Joint]) -> None:
    """A frame that says nothing among frames of draws; joints among frames."""
    frames = frames_of(joints)
    frames[1].attrs.clear()
    with pytest.raises(ParameterError, match="3 of them were drawn"):
        dc.fit_models(frames, FORMULA)
    assert dc.fit_models(frames, FORMULA, rule="imputations").combined.rule == "imputations"
    with pytest.raises(ParameterError, match="all joints or all rows"):
        dc.fit_models([joints[0], frames[0]], FORMULA)


def test_missing_values_are_refused_with_both_ways_to_leave_them_out(joints: list[dc.Joint]) -> None:
    """`missing="drop"` fits the rows that `dropna` leaves; without it the message has the line to write."""
    frames = [joint.sample(seed=1) for joint in joints]
    with pytest.raises(ParameterError, match=r"missing='drop'.*dropna\(subset=\['town'\]\)"):
        dc.fit_models(frames, FORMULA)
    dropped = dc.fit_models(frames, FORMULA, missing="drop")
    by_hand = dc.fit_models([frame.dropna(subset=["town"]) for frame in frames], FORMULA)
    assert np.array_equal(dropped.estimates, by_hand.estimates)
    assert any("left out, " in note for note in dropped.notes)
    assert dc.fit_models(frames, "sick ~ age").estimates.shape == (
        4,
        2,
    )  # the model has no column with missing values
    with pytest.raises(ParameterError, match="must be 'drop' for sets"):
        dc.fit_models(frames, FORMULA, missing="level")


def test_missing_numbers_are_left_out_too() -> None:
    """Whole numbers beside missing ones are a type of their own in pandas, which the fit takes too."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"y": rng.normal(size=50), "x": pd.array(rng.integers(0, 9, 50), dtype="Int64")})
    frame.loc[:9, "x"] = pd.NA
    found = dc.fit_models([frame, frame], "y ~ x", "linear", missing="drop")
    slope = np.polyfit(frame["x"][10:].astype(float), frame["y"][10:], 1)[0]
    assert found.combined.estimate[1] == pytest.approx(slope)


def test_values_for_bins_of_joints_are_those_of_a_release(joints: list[dc.Joint]) -> None:
    """The same rows with other numbers in their bins: values that are shifted and stretched divide the slope; wrong ones are refused in the same words."""
    middles = dc.fit_models(joints, FORMULA, seed=1)
    given = dc.fit_models(joints, FORMULA, values={"age": [0, 2, 4]}, seed=1)
    age = middles.terms.index("age")
    np.testing.assert_allclose(given.estimates[:, age], middles.estimates[:, age] * 20 / 2, rtol=1e-5)
    assert any("age: the value given stands for each of its 3 bins" in note for note in given.notes)
    assert any("age: its middle stands for each of its 3 bins" in note for note in middles.notes)
    for values in ({"age": [1, 2]}, {"town": [1, 2, 3]}, {"agee": [1, 2, 3]}, {"age": ["a", "b", "c"]}):
        said = []
        for source in (joints, RELEASE):
            with pytest.raises(ParameterError, match=r"^values") as refused:
                dc.fit_models(source, FORMULA, values=values, seed=1)  # type: ignore[arg-type]
            said.append(str(refused.value))
        assert said[0] == said[1]
    with pytest.raises(ParameterError, match="a release or its joints"):
        dc.fit_models(frames_of(joints), FORMULA, values={"age": [0, 2, 4]})


@pytest.mark.parametrize(
    ("formula", "family", "options"),
    [
        ("sick ~ C(age)", "logistic", {}),
        ("age ~ sick", "ordinal", {}),
        ("age ~ sick", "multinomial", {"levels": {"age": ["60..79", "40..59", "20..39"]}}),
        ("sick ~ town", "logistic", {"missing": "level"}),
        ("sick ~ age", "linear", {}),
        ("{age > 40} ~ town", "logistic", {}),
        ("log(age) ~ town", "linear", {}),
    ],
)
def test_joints_are_coded_as_their_release_is(
    joints: list[dc.Joint], formula: str, family: Any, options: dict[str, Any]
) -> None:
    """Bins as categories and as classes, missing as a level, numbers that are levels, and outcomes that are expressions: the same terms and about the same estimates."""
    whole = dc.fit_models(RELEASE, formula, family, seed=2, unmeasured="none", **options)
    drawn = dc.fit_models(joints, formula, family, seed=1, **options)
    assert drawn.terms == whole.terms
    assert (np.abs(drawn.combined.estimate - whole.combined.estimate) < 1.5 * whole.combined.std_error).all()


def test_joints_of_other_columns_are_refused(joints: list[dc.Joint]) -> None:
    """Sets have one schema; a name that it does not have is refused with the nearest one."""
    others = dc.solve(RELEASE, draws=2, columns=("sick", "age"), seed=1)
    with pytest.raises(ParameterError, match="the joints of one release"):
        dc.fit_models([joints[0], others[0]], "sick ~ age")
    with pytest.raises(ParameterError, match="'ages' must be a column of the joints; did you mean 'age'"):
        dc.fit_models(others, "sick ~ ages")


def test_options_of_the_other_kind_of_source_are_refused(joints: list[dc.Joint]) -> None:
    """A rule is for sets, a seed for what is drawn."""
    with pytest.raises(ParameterError, match="rule"):
        dc.fit_models(RELEASE, FORMULA, rule="imputations")
    with pytest.raises(ParameterError, match="seed"):
        dc.fit_models(frames_of(joints), FORMULA, seed=1)
