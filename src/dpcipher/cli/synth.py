"""`dpcipher synth`: from a release, a saved joint or published tables to synthetic rows. Post-processing: it costs no privacy."""

import secrets
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpcipher as dc
from dpcipher.cli import options, output
from dpcipher.cli.conditions import read_conditions
from dpcipher.cli.schema_file import load_schema

if TYPE_CHECKING:
    from dpcipher.engines.paper import Paper
    from dpcipher.joint.report import SolveReport
    from dpcipher.joint.rules import Tally


@click.command("synth", cls=options.Writer)
@click.argument("release", type=options.FILE, required=False)
@options.output(
    "target",
    "Write rows here: .csv, .csv.gz, .parquet, or labelled .dta (Stata) or .sav (SPSS); with --spark, a new folder.",
)
@click.option("-n", "--n-rows", type=int, help="So many rows; by default the release's own total.")
@click.option(
    "--seed", type=int, help="Repeat the same draw. Sampling costs no privacy, so a seed is harmless."
)
@click.option(
    "--given",
    type=options.Pair(),
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only rows with this value, or in this range of bins, e.g. --given region=coast --given age=20..29, or age=65.. without an end; "
    "repeat for more. A column that is named twice may have either value.",
)
@click.option(
    "--engine",
    metavar="auto|table|rows|paper",
    default="auto",
    show_default=True,
    help="How to solve for the joint distribution.",
)
@click.option(
    "--reading",
    metavar="NAME",
    default="literal",
    show_default=True,
    help="Of --engine paper, how its algorithm is read: 'literal', 'clipped inputs', 'guarded', 'guarded, clipped inputs', 'clipped', 'literal, average', 'averaged'.",
)
@click.option("--lam", type=float, help="Of --engine paper, the ridge; 0.01 by default.")
@click.option(
    "--draws",
    type=int,
    metavar="M",
    help="M files for multiple imputation: draws of the private table given the noise, from one release.",
)
@click.option(
    "--columns",
    type=options.Attrs(),
    help="With --draws: only these columns, e.g. --columns age,sex; for releases whose full table is too large to be drawn.",
)
@click.option(
    "--values",
    metavar="drawn|middle",
    default="drawn",
    show_default=True,
    help="What stands for a bin of a number: a value drawn inside it, or its middle.",
)
@click.option("--independent", is_flag=True, help="Draw independent rows instead of evenly spread ones.")
@click.option(
    "--spark",
    is_flag=True,
    help="Let Spark's executors draw the rows, and write a folder of Parquet files; the cluster is that of spark-submit, or this machine.",
)
@click.option(
    "--raw-text",
    is_flag=True,
    help="In CSV, write texts that begin with = + - @ as they are; by default a quote (') goes before them.",
)
@click.option(
    "--save-joint",
    cls=options.Output,
    endings=(".npz",),
    type=options.FILE,
    help="Also save the joint distribution here (.npz), to draw from it again.",
)
@click.option(
    "--table",
    "tables",
    type=options.TableFile(),
    multiple=True,
    metavar="COLUMNS=FILE",
    help="A published table, e.g. --table age,sex=table1.csv; repeat for more. Its labels may be of groups of levels.",
)
@click.option("--schema", type=options.FILE, help="The schema of the published tables.")
@click.option(
    "--scale",
    type=float,
    help="The scale of their noise: b of discrete Laplace, sigma of discrete Gaussian, 0 = exact.",
)
@click.option(
    "--mechanism",
    metavar="laplace|gaussian",
    default="laplace",
    show_default=True,
    help="The noise of the published tables.",
)
@options.as_json
def command(
    release: Path | None,
    target: Path,
    n_rows: int | None,
    seed: int | None,
    given: tuple[tuple[str, str], ...],
    engine: str,
    reading: str,
    lam: float | None,
    draws: int | None,
    columns: tuple[str, ...] | None,
    values: str,
    independent: bool,
    spark: bool,
    raw_text: bool,
    save_joint: Path | None,
    force: bool,
    json_: bool,
    **published: Any,
) -> None:
    """Make synthetic rows from RELEASE, or from tables that somebody published.

    RELEASE is a release file, or a joint saved with --save-joint. Published tables are CSV files with one row per cell, the
    columns' levels and a column `count`. A release of m sets gives m files: rows-1.csv, rows-2.csv, … So does --draws m, from any release: analyse
    each file as if it were the private table, and pool the results by Rubin's rule for multiple imputation (`fit_models` or `combine` with
    rule="imputations", or `pool` in R's mice). Parquet files say so themselves, Stata and SPSS files to people; CSV files cannot.

    \b
    Example:
      dpcipher synth people.release.parquet -n 5000 -o synthetic.csv
      dpcipher synth people.release.parquet -n 1_000_000_000 -o rows.parquet
      dpcipher synth people.release.parquet -n 1_000_000_000 --spark -o rows.parquet
      dpcipher synth people.release.parquet --given region=coast --given age=27..44 -o coast.csv
      dpcipher synth people.release.parquet --draws 5 -o imputed.csv
      dpcipher synth people.release.parquet --draws 5 --columns age,income --values middle -o imputed.parquet
      dpcipher synth --schema people.yaml --scale 21 --table age,income=t1.csv --table region,age=t2.csv -o rows.csv
    """
    from dpcipher.files import check_output
    from dpcipher.io.write import ROWS_ENDINGS, check_writable
    from dpcipher.joint.bins import checked_values
    from dpcipher.joint.spark import spark_session, write_spark

    written = checked_values(values)
    _check_imputations(
        draws,
        columns,
        n_rows=n_rows,
        given=given,
        independent=independent,
        engine=engine,
        reading=reading,
        lam=lam,
    )
    solver = _engine(engine, reading, lam)
    source = _source(release, **published)
    conditions = read_conditions(source.schema, given)
    _check_draw(source.schema, n_rows, conditions)
    session = spark_session() if spark else None
    sets = draws or (source.sets if isinstance(source, dc.Release) else 1)
    files = [_numbered(target, number, sets) for number in range(sets)]
    saved = [] if save_joint is None else [_numbered(save_joint, number, sets) for number in range(sets)]
    if session is None:
        for file in files:
            check_writable(file, ROWS_ENDINGS, force=force)
    for file in saved:
        check_output(file, force=force)
    with output.progress() as say:
        say("solving")
        joints = _joints(source, solver, draws, columns, seed, say)
        say("drawing rows")
        tallies = [joint.tally() for joint in joints]
        for number, (joint, file, tally) in enumerate(zip(joints, files, tallies, strict=True)):
            own_seed = seed if seed is None or draws is None else seed + number
            rows = joint.stream(
                n_rows, seed=own_seed, given=conditions, independent=independent, values=written
            )
            if session is not None:
                write_spark(rows.to_spark(session), file)
            else:
                rows.write(
                    file,
                    formulas="keep" if raw_text else "quote",
                    tally=tally,
                    progress=say,
                    force=force,
                )
            if saved:
                joint.save(saved[number], force=force)
    if session is None:
        joints = [_with_cost(joint, tally) for joint, tally in zip(joints, tallies, strict=True)]
    _report(joints, files, n_rows, json_)


def _with_cost(joint: "dc.Joint", tally: "Tally") -> "dc.Joint":
    """The joint with what rules cost this draw in its report, instead of what they cost on average."""
    return replace(joint, health=replace(joint.health, rules=tally.cost)) if joint.schema.rules else joint


def _source(
    release: Path | None,
    *,
    tables: tuple[tuple[str, str], ...],
    schema: Path | None,
    scale: float | None,
    mechanism: str,
) -> "dc.Release | dc.Joint":
    """The release file or joint that was named, or a release made of published tables."""
    if release is not None:
        if tables or schema is not None or scale is not None:
            raise click.UsageError("give either RELEASE or --table with --schema and --scale, not both")
        return dc.Joint.load(release) if release.suffix == ".npz" else dc.Release.load(release)
    if not tables or schema is None or scale is None:
        raise click.UsageError("give RELEASE, or published tables with --table, --schema and --scale")
    named = [(options.Table().convert(names, None, None), path) for names, path in tables]
    if len(dict(named)) < len(named):
        raise click.UsageError("each --table must name other columns; one was given twice")
    return dc.Release.from_tables(dict(named), load_schema(schema), scale=scale, mechanism=mechanism)


def _check_imputations(draws: int | None, columns: tuple[str, ...] | None, **changed: Any) -> None:
    """Refuse options that only --draws has, and those that break the rule for its files."""
    if draws is None:
        if columns is not None:
            raise click.UsageError("--columns needs --draws; without it rows have all columns")
        return
    from dpcipher.engines.draws import NO_ENGINE
    from dpcipher.joint.imputed import BREAKS

    for name, value in changed.items():
        if value not in (None, (), False, "auto", "literal"):
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} must be left out with --draws: {BREAKS.get(name, NO_ENGINE)}")


def _check_draw(schema: "dc.Schema", n_rows: int | None, given: dict[str, object]) -> None:
    """Refuse what the draw would refuse before the solve, which may take minutes."""
    from dpcipher.joint.joint import checked_n_rows

    if n_rows is not None:
        checked_n_rows(n_rows)
    schema.allowed(given)


def _engine(name: str, reading: str, lam: float | None) -> "str | Paper":
    """The engine with its options, which only the paper's has."""
    if name != "paper":
        if reading != "literal" or lam is not None:
            option = "--lam" if lam is not None else "--reading"
            raise click.UsageError(
                f"{option} must be left out with --engine {name}, which would ignore it; try --engine paper"
            )
        return name
    engine = dc.Paper.read_as(reading)
    return engine if lam is None else replace(engine, lam=lam)


def _joints(
    source: "dc.Release | dc.Joint",
    engine: "str | Paper",
    draws: int | None,
    columns: tuple[str, ...] | None,
    seed: int | None,
    say: Callable[[str], None],
) -> list["dc.Joint"]:
    if isinstance(source, dc.Joint):
        if draws is not None:
            raise click.UsageError("--draws needs a release; a saved joint holds no noise to draw from")
        return [source]
    if draws is not None:
        drawn = secrets.randbits(63) if seed is None else seed
        return dc.solve(source, draws=draws, columns=columns, seed=drawn, progress=say)
    return dc.solve(source, set="all", engine=engine, progress=say)


def _numbered(path: Path, number: int, of: int) -> Path:
    """`rows.csv`, or `rows-1.csv`, `rows-2.csv` … when there are several sets."""
    stem, dot, endings = path.name.partition(".")
    return path if of == 1 else path.with_name(f"{stem}-{number + 1}{dot}{endings}")


def _report(joints: list["dc.Joint"], files: list[Path], n_rows: int | None, json_: bool) -> None:
    from dpcipher.joint.imputed import RULE

    lines, facts = [], []
    shared = _shared_report(joints)
    for joint, file in zip(joints, files, strict=True):
        rows = joint.n_rows if n_rows is None else n_rows
        health = joint.health
        lines.append(f"Wrote    {file}: {rows:,} rows, {len(joint.schema.columns)} columns")
        if shared is None:
            lines.append(str(health))
        elif health.rules is not None:
            lines.append(str(health.rules))
        facts.append(
            {
                "rows": str(file),
                "n_rows": rows,
                "engine": health.engine,
                "converged": health.converged,
                "seconds": health.seconds,
                "warnings": list(health.warnings),
                **({} if health.rules is None else {"rules": asdict(health.rules)}),
            }
        )
    result: dict[str, Any] = {"files": facts}
    if joints[0].health.is_draw:
        result |= {"rule": RULE, "notes": list(joints[0].health.notes)}
    output.show("\n".join([*lines, *([] if shared is None else [str(shared)])]), result, as_json=json_)


def _shared_report(joints: list["dc.Joint"]) -> "SolveReport | None":
    """What all draws of one release have to say, once; None where every joint has a report of its own."""
    reports = [replace(joint.health, rules=None) for joint in joints]
    return reports[0] if len(reports) > 1 and all(report == reports[0] for report in reports) else None
