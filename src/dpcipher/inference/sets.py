"""The m sets of a model as frames with the same columns and levels: the caller's rows, or rows of joints."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpcipher.drawing.curator_only import UNKNOWN
from dpcipher.errors import ParameterError
from dpcipher.inference.bin_effects import coding_of_bins
from dpcipher.inference.cells import Missing, coded_cells
from dpcipher.inference.combine import Rule, word_of
from dpcipher.inference.design import with_family
from dpcipher.inference.formula import ParsedFormula, parse_formula, read_formula
from dpcipher.inference.notes import Note, Rank, coding_notes, listed, unit_notes
from dpcipher.inference.regression import Family
from dpcipher.joint.imputed import BREAKS, Imputed, tells_release
from dpcipher.joint.joint import Joint

EPOCH = pd.Timestamp(0, tz="UTC")
DROPPED = (
    "rows with a missing value in {names} were left out, {share} of a set: the estimates are about the others"
)
CONTRADICTED = (
    "the sets say that they were drawn from one release, solve(release, draws=m), whose rule is "
    "'imputations'; rule={rule!r}, as asked for, "
    "does not fit them"
)
BROKEN = {
    "n_rows": "the sets have another number of rows than the table: intervals are off",
    "given": "the sets are a part with as many rows as all: intervals are too short",
    "independent": "rows were drawn independently: intervals are too wide",
}
BINNED = (
    "{names}: these values were drawn inside bins, unrelated to the other columns: slopes on them come out "
    "too near 0, which no interval here holds. "
    "Sample with values='middle' (synth --values middle), or give fit_models the release or its draws "
    "themselves"
)


@dataclass(frozen=True)
class Sets:
    """The frames of a model's columns, the mark of each set, notes on their origin, and the stamp of a model.

    `family` is None where it follows from the values of the outcome.
    """

    formula: ParsedFormula
    family: Family | None
    frames: list[pd.DataFrame]
    marks: list[Imputed | None]
    notes: list[Note]
    stamp: str

    def rule(self, asked: Rule | None) -> tuple[Rule, list[Note]]:
        """The rule that combines the sets, as the caller asks or as their marks say, and notes about it."""
        imputed = [mark for mark in self.marks if mark is not None]
        if not imputed:
            return asked or "sanitizations", []
        if asked is None and len(imputed) < len(self.marks):
            raise ParameterError(
                f"sets ({len(self.marks)}) must be of one kind: {len(imputed)} of them were drawn from a "
                "release by solve(draws=m), the others do not say where "
                "they are from. Give rule='imputations' where all were drawn so"
            )
        chosen: Rule = asked or ("imputations" if len(self.marks) > 1 else "sanitizations")
        return chosen, _imputation_notes(imputed, asked, self.formula.columns)


def _imputation_notes(imputed: list[Imputed], rule: Rule | None, columns: Collection[str]) -> list[Note]:
    binned = dict.fromkeys(name for mark in imputed for name in mark.binned if name in columns)
    changed = dict.fromkeys(option for mark in imputed for option in mark.changed)
    notes = [Note(f"{option}: {BREAKS[option]}", BROKEN[option], Rank.UNKNOWN) for option in changed]
    if rule not in (None, "imputations"):
        short = f"rule={rule!r} does not fit sets drawn from one release; take 'imputations'"
        notes.insert(0, Note(CONTRADICTED.format(rule=rule), short, Rank.UNKNOWN))
    if binned:
        short = f"slopes on {listed(binned)} come out too near 0; sample with values='middle'"
        notes.append(Note(BINNED.format(names=", ".join(binned)), short, Rank.SENSITIVE))
    return notes


def joints_among(sets: Any) -> list[Joint]:
    """The joints among the sets; none where all are rows. A mixture is refused."""
    items = list(sets) if isinstance(sets, list | tuple) else [sets]
    joints = [item for item in items if isinstance(item, Joint)]
    if joints and len(joints) < len(items):
        raise ParameterError(
            f"sets ({len(joints)} joints among {len(items)}) must be all joints or all rows; sample the "
            "joints, or leave the rows out"
        )
    return joints


def sets_of_joints(
    joints: Sequence[Joint],
    text: str,
    family: Family | None,
    *,
    seed: int | None,
    levels: Mapping[str, Sequence[Any]],
    values: Mapping[str, Sequence[float]],
    missing: Missing,
) -> Sets:
    """A set of rows of every joint, as many as it draws by default, coded as the cells of a release are."""
    schema = joints[0].schema
    if any(joint.schema != schema for joint in joints):
        raise ParameterError("sets (joints) must have the same columns; give the joints of one release")
    if any(joint.n_rows < 1 for joint in joints):
        raise ParameterError(
            "sets hold a joint of no rows: the noise is larger than the number of rows; there is nothing to "
            "fit"
        )
    formula, family = with_family(parse_formula(text, schema, "joints"), family, schema)
    rows = []
    for joint, own in zip(joints, np.random.SeedSequence(seed).spawn(len(joints)), strict=True):
        codes = joint.coded(joint.n_rows, np.random.default_rng(own))
        columns = dict(zip(schema.attrs, codes.T, strict=True)) | schema.by_column(codes)
        rows.append(coded_cells(schema, formula, columns, levels=levels, values=values, missing=missing))
    bins = rows[0].bins
    shares = [1 - float(part.keep.mean()) for part in rows]
    notes = [
        *(Note(coding_of_bins(one, given=one.column in values)) for one in bins.values() if one.wide),
        *coding_notes(formula, family, schema, bins, levels),
        *([_dropped_note(rows[0].dropped, shares)] if any(shares) else []),
    ]
    marks = [Imputed() if joint.health.is_draw else None for joint in joints]
    return Sets(formula, family, [part.frame for part in rows], marks, notes, "")


def sets_of_rows(
    sets: Any,
    text: str,
    family: Family | None,
    *,
    levels: Mapping[str, Sequence[Any]],
    drop_missing: bool,
    rows_from: str | None,
) -> Sets:
    """The caller's data sets, with the same levels in each. They may be private: no refusal quotes a cell."""
    given = list(sets) if isinstance(sets, list | tuple) else [sets]
    frames = [_frame(data) for data in given]
    names = [list(frame.columns) for frame in frames]
    if not frames or any(own != names[0] for own in names) or len(set(names[0])) < len(names[0]):
        raise ParameterError(
            f"sets ({len(frames)}) must be one or more data sets with the same columns, each once"
        )
    formula = read_formula(text, names[0], "sets")
    frames, dates = _alike([frame[list(formula.columns)].copy() for frame in frames], levels)
    frames, dropped = _without_missing(frames, drop=drop_missing)
    stamp = "" if rows_from is not None or all(map(tells_release, given)) else UNKNOWN
    words = [] if rows_from is None else word_of(rows_from)
    notes = [
        *unit_notes(dict.fromkeys(dates, "date")),
        *(Note(word, f"public on this word alone: {str(rows_from).strip()}", Rank.UNKNOWN) for word in words),
        *dropped,
    ]
    return Sets(formula, family, frames, [Imputed.of(data) for data in given], notes, stamp)


def _frame(data: Any) -> pd.DataFrame:
    """A data set as a data frame, of pandas or of whatever Arrow understands, its columns by name."""
    try:
        frame = data if isinstance(data, pd.DataFrame) else pa.table(data).to_pandas()
    except Exception:  # of Arrow or another library, which may quote a cell
        raise ParameterError(
            f"sets ({type(data).__name__}) must be data frames, or one release; give a pandas or polars "
            "frame, an Arrow table or a list of them"
        ) from None
    return frame.rename(columns=str)


def _alike(
    frames: list[pd.DataFrame], levels: Mapping[str, Sequence[Any]]
) -> tuple[list[pd.DataFrame], list[str]]:
    """The frames with the same levels of every category, and which columns were dates.

    Dates count in days since 1970-01-01, as those of a release do.
    """
    dates = [name for name in frames[0] if name not in levels and _are_dates(frames[0][name])]
    for name in frames[0]:
        try:
            for frame in frames if name in dates else ():
                frame[name] = (pd.to_datetime(frame[name], utc=True) - EPOCH) / pd.Timedelta(days=1)
            categories = _levels(name, frames, levels)
            for frame in frames if categories is not None else ():
                ordered = getattr(frame[name].dtype, "ordered", False)
                frame[name] = pd.Categorical(frame[name], categories=categories, ordered=ordered)
        except Exception:  # of pandas or Arrow, which may quote a cell
            raise ParameterError(
                f"columns ({name}) must hold values of one kind: numbers, texts, or dates from 1678 to 2262; "
                "convert it, or leave it out of the formula"
            ) from None
    return frames, dates


def _are_dates(cells: pd.Series) -> bool:
    """Whether a column holds dates of pandas or Python; texts are none."""
    return pd.api.types.infer_dtype(cells, skipna=True) in ("date", "datetime", "datetime64")


def _levels(name: str, frames: list[pd.DataFrame], levels: Mapping[str, Sequence[Any]]) -> list[Any] | None:
    """The levels of a column: as given, as declared by its type, or sorted; None for a number."""
    if name in levels:
        return list(levels[name])
    first = frames[0][name]
    if isinstance(first.dtype, pd.CategoricalDtype):
        return list(
            dict.fromkeys(
                value for frame in frames for value in frame[name].astype("category").cat.categories
            )
        )
    if pd.api.types.is_numeric_dtype(first.dtype) and not pd.api.types.is_bool_dtype(first.dtype):
        return None
    return sorted({value for frame in frames for value in frame[name].dropna().unique()})


def _without_missing(frames: list[pd.DataFrame], *, drop: bool) -> tuple[list[pd.DataFrame], list[Note]]:
    """The rows of every set without missing values; others are refused, or left out with a note."""
    absent = [frame.isna() for frame in frames]
    names = [name for name in frames[0] if any(empty[name].any() for empty in absent)]
    if not names:
        return frames, []
    if not drop:
        raise ParameterError(
            f"columns ({', '.join(names)}) must have a value in every row (one of levels, where these are "
            "given). missing='drop' leaves the other rows out of "
            f"every set, as [frame.dropna(subset={names}) for frame in sets] does"
        )
    kept = [frame[~empty.any(axis=1)] for frame, empty in zip(frames, absent, strict=True)]
    if not all(map(len, kept)):
        raise ParameterError(
            f"columns ({', '.join(names)}) have no row with a value in all of them in some set"
        )
    shares = [1 - len(few) / len(frame) for few, frame in zip(kept, frames, strict=True)]
    return kept, [_dropped_note(names, shares)]


def _dropped_note(names: Sequence[str], shares: Sequence[float]) -> Note:
    """Which share of each set was left out for a missing value in these columns."""
    low, high = (f"{100 * share:.1f}" for share in (min(shares), max(shares)))
    share = f"{low} %" if low == high else f"{low} to {high} %"
    short = f"without {share} of the rows: {listed(names)} is missing there"
    return Note(DROPPED.format(names=", ".join(names), share=share), short, Rank.ABOUT)
