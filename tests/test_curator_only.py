"""Whatever comes from private rows says so: every object, every way to show it, and every file. What is unknown is taken for private."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import NotPrivate, ParameterError, SchemaError

STAMP = "CURATOR ONLY"
SPEC = {
    "columns": [
        {"name": "sex", "kind": "categorical", "levels": ["F", "M"]},
        {"name": "age", "kind": "integer", "min": 0, "max": 59, "bins": 6},
        {"name": "ill", "kind": "categorical", "levels": ["no", "yes"]},
    ]
}
SCHEMA = dc.Schema.from_dict(SPEC)
FORMULA = "ill ~ sex + age"


def people(seed: int = 0, n: int = 300) -> pd.DataFrame:
    """Invented rows."""
    rng = np.random.default_rng(seed)
    ill = np.where(rng.random(n) < 0.3, "yes", "no")
    return pd.DataFrame({"sex": rng.choice(["F", "M"], n), "age": rng.integers(0, 60, n), "ill": ill})


def release() -> dc.Release:
    """Noisy tables that anybody may see."""
    rng = np.random.default_rng(1)
    tables = {("sex", "ill"): rng.integers(50, 90, (2, 2)), ("age", "ill"): rng.integers(10, 40, (6, 2))}
    return dc.Release.from_tables(tables, SCHEMA, scale=2.0)


def ledger(folder: Path) -> dc.Ledger:
    """What was spent is no secret."""
    return dc.Ledger.create(folder / "t.ledger", epsilon=9, unit="add-remove", name="t")


# For each public name what it makes of private rows, or of rows and numbers of which nothing is known.
PRIVATE: dict[str, Callable[[], list[Any]]] = {
    "Schema": lambda: [
        draft := dc.Schema.draft(people()),
        dc.Schema.check(SCHEMA, people().assign(sex="X")),
        dc.Schema.check(draft, people(2)),
    ],
    "plan": lambda: [
        dc.plan(dc.Schema.draft(people()), workload=workload, epsilon=1.0, unit="add-remove")
        for workload in (2, "auto")
    ],
    "evaluate": lambda: [
        dc.evaluate(
            people(), [people(3), people(4)], SCHEMA, formula=FORMULA, holdout=people(5), predict="ill"
        )
    ],
    "compare": lambda: [
        dc.compare(
            people(),
            SCHEMA,
            methods=["uniform", "independent"],
            epsilons=[1.0, 2.0],
            repeats=2,
            unit="add-remove",
            workers=1,
        )
    ],
    "sss": lambda: [dc.sss(([1.0, -2.0], [True, False]), ([0.5, 2.0], [True, True]))],
    "fit_models": lambda: [
        dc.fit_models(people(), FORMULA),
        dc.fit_models([people(), people(1)], "age ~ sex"),
    ],
    "combine": lambda: [dc.combine([1.0, 2.0], [0.1, 0.1]), dc.combine(np.ones((2, 3)), np.ones((2, 3)))],
    "plot": lambda: [
        dc.plot(thing) for name in PRIVATE if name != "plot" for thing in made(name) if drawable(thing)
    ],
}

# And what rests on public or released facts alone.
METHODS = [
    "MWEM",
    "Cipher",
    "Fourier",
    "FullHistogram",
    "Independent",
    "JunctionTree",
    "Modips",
    "MultinomialDirichlet",
    "PrivBayes",
]
PUBLIC: dict[str, Callable[[Path], list[Any]]] = {
    "Auto": lambda folder: [dc.Auto()],
    "Grouped": lambda folder: [dc.Grouped("sex", sex=[["F"], ["M"]])],
    "Paper": lambda folder: [dc.Paper()],
    "FullTable": lambda folder: [dc.FullTable()],
    "Rows": lambda folder: [dc.Rows()],
    "Uniform": lambda folder: [dc.Uniform(unit="add-remove").fit(people(), SCHEMA)],
    **{
        name: lambda folder, name=name: [getattr(dc, name)(epsilon=1.0, unit="add-remove")]
        for name in METHODS
    },
    "Independent": lambda folder: [dc.Independent(epsilon=1.0, unit="add-remove").fit(people(), SCHEMA)],
    "Ledger": lambda folder: [ledger(folder)],
    "Release": lambda folder: [
        release(),
        release().project("sex"),
        release().interval("sex"),
        release().query("sex"),
    ],
    "Joint": lambda folder: [dc.solve(release()), dc.solve(release()).project("sex")],
    "audit": lambda folder: [audit()],
    "estimate": lambda folder: [dc.estimate(release(), lambda joint: joint[0], "sex", draws=50, seed=1)],
    "measure": lambda folder: [
        dc.measure(people(), SCHEMA, epsilon=4, unit="add-remove", ledger=ledger(folder))
    ],
    "posterior": lambda folder: [dc.posterior(release(), ("sex", "ill"), draws=50, seed=1)],
    "report": lambda folder: [],  # a page; the files are below
    "solve": lambda folder: [dc.solve(release())],
    "trust": lambda folder: [dc.trust(release())],
    "Schema": lambda folder: [SCHEMA, dc.Schema.draft(people()).sign("Ada", "2026-01-01", unchanged=True)],
    "plan": lambda folder: [dc.plan(SCHEMA, epsilon=1.0, unit="add-remove")],
    "fit_models": lambda folder: [
        dc.fit_models(release(), FORMULA, draws=100, seed=1),
        dc.fit_models(dc.solve(release(), draws=2, seed=1), FORMULA, seed=1),
        dc.fit_models([joint.sample(200, seed=1) for joint in dc.solve(release(), draws=2, seed=1)], FORMULA),
        dc.fit_models(people(), FORMULA, rows_from="synthetic rows of a colleague"),
    ],
    "combine": lambda folder: [dc.combine([1.0, 2.0], [0.1, 0.1], rows_from="synthetic rows of a colleague")],
    "plot": lambda folder: [dc.plot(release(), "sex")],
}

MADE: dict[str, list[Any]] = {}


@cache
def audit() -> Any:
    """No private rows are needed for it."""
    return dc.audit(only="independence")


def made(name: str) -> list[Any]:
    """What a name makes of private rows, made once."""
    if name not in MADE:
        MADE[name] = PRIVATE[name]()
    return MADE[name]


def drawable(thing: Any) -> bool:
    """Whether `plot` draws it."""
    try:
        dc.plot(thing)
    except ParameterError:
        return False
    return True


def test_every_public_name_is_looked_at() -> None:
    """A name that is added must say here what it makes of private rows."""
    assert set(PRIVATE) | set(PUBLIC) == set(dc.__all__)


def parts(thing: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """An object of ours, and whatever of ours its fields and properties hold."""
    if isinstance(thing, list | tuple):
        for item in thing:
            yield from parts(item, seen)
    elif isinstance(thing, dict):
        for item in thing.values():
            yield from parts(item, seen)
    elif isinstance(thing, pd.DataFrame) or type(thing).__module__.startswith("dpcipher."):
        if id(thing) in seen:
            return
        seen.add(id(thing))
        yield type(thing).__name__, thing
        # The columns of a draft, and what a plan is made of, are facts taken out of it one by one.
        if isinstance(thing, pd.DataFrame) or type(thing).__name__ in ("Schema", "Plan", "Plot"):
            return
        for name in dir(thing):
            if not name.startswith("_") and not callable(value := getattr(thing, name)):
                yield from parts(value, seen)


def shown(thing: Any) -> dict[str, str]:
    """Every way to show an object."""
    ways = {"repr": repr, "str": str, "format": format}
    texts = {name: way(thing) for name, way in ways.items()}
    for name in ("_repr_html_", "_repr_svg_", "_repr_markdown_", "to_json"):
        if hasattr(thing, name):
            texts[name] = getattr(thing, name)()
    for name in ("to_dict", "to_frictionless"):
        if hasattr(thing, name) and not isinstance(thing, dc.Schema):
            texts[name] = json.dumps(getattr(thing, name)())
    if hasattr(thing, "svg"):
        texts["svg"] = thing.svg
    return texts


@pytest.mark.parametrize("name", PRIVATE)
def test_what_comes_from_private_rows_says_so(name: str) -> None:
    """Every object and every part of it, in every way to show it; frames carry it in their attrs."""
    things = made(name)
    assert things
    for thing in things:
        for kind, part in parts(thing, set()):
            if isinstance(part, pd.DataFrame):
                assert STAMP in part.attrs.get("curator_only", ""), kind
            else:
                assert {way for way, text in shown(part).items() if STAMP not in text} == set(), kind
        for method in ("table", "per_column", "to_frame"):
            if hasattr(thing, method) and not isinstance(thing, dc.Schema):
                assert STAMP in getattr(thing, method)().attrs["curator_only"], method


@pytest.mark.parametrize("name", PUBLIC)
def test_what_anybody_may_see_does_not(name: str, tmp_path: Path) -> None:
    """A stamp on everything would say nothing."""
    for thing in PUBLIC[name](tmp_path):
        assert [way for way, text in shown(thing).items() if STAMP in text] == []


def test_no_line_is_long() -> None:
    """In a notebook an object is a line and a card, an audit too."""
    things = [*(thing for name in PRIVATE for thing in made(name)), audit()]
    assert [repr(thing) for thing in things if len(repr(thing)) > 500 or "\n" in repr(thing)] == []


def test_plots_of_private_rows_are_kept_from_others(tmp_path: Path) -> None:
    """A folder of mode 0700 and a file of mode 0600, with the stamp in it; never beside other files, and the error says what would help."""
    for number, plot in enumerate(made("plot")):
        path = plot.save(tmp_path / f"own{number}" / "p.svg")
        assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
        assert STAMP in path.read_text(encoding="utf-8")
    (tmp_path / "mine.txt").touch()
    with pytest.raises(NotPrivate, match="say on whose word with rows_from="):
        dc.plot(made("fit_models")[0]).save(tmp_path / "p.svg")


def test_results_save_themselves_for_the_curator(tmp_path: Path) -> None:
    """As text, in a folder of their own."""
    things = [thing for name in PRIVATE for thing in made(name) if name not in ("plot", "Schema") and hasattr(thing, "save")]  # fmt: skip
    assert len(things) == 3
    for number, thing in enumerate(things):
        path = thing.save(tmp_path / f"own{number}")
        assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
        assert path.read_text(encoding="utf-8").startswith(STAMP)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_draft_is_kept_from_others_until_it_is_signed(ending: str, tmp_path: Path) -> None:
    """Mode 0600 with the stamp in the file; a signature takes both away, and what was written is read back."""
    draft, path = dc.Schema.draft(people()), tmp_path / f"d.{ending}"
    draft.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert STAMP in path.read_text(encoding="utf-8")
    read = dc.Schema.load(path)
    assert read.fingerprint() == draft.fingerprint()
    assert dc.Schema.from_dict({"curator_only": "x", **read.to_dict()}) == read
    signed = tmp_path / f"s.{ending}"
    read.sign("Ada", "2026-01-01", unchanged=True).save(signed)
    assert signed.stat().st_mode & 0o044
    assert STAMP not in signed.read_text(encoding="utf-8")


def test_nothing_publishable_is_made_with_a_draft(tmp_path: Path) -> None:
    """Its levels would travel in the release, the joint and the rows, which carry no stamp."""
    draft = dc.Schema.draft(people())
    tables = {("sex", "ill"): [[50, 60], [70, 80]], ("age",): np.full(draft.column("age").size, 9)}
    for make in (
        lambda: dc.Release.from_tables(tables, draft, scale=2.0),
        lambda: dc.Uniform(unit="add-remove").fit(people(), draft),
        lambda: dc.Cipher(epsilon=1, unit="add-remove").fit(people(), draft),
        lambda: dc.measure(people(), draft, epsilon=1, unit="add-remove", ledger=ledger(tmp_path)),
    ):
        with pytest.raises(SchemaError, match="sign it"):
            make()


def test_what_is_unknown_is_taken_for_private() -> None:
    """Objects that can be of both kinds have the stamp unless they are told otherwise."""
    plain = dc.plan(SCHEMA, epsilon=1.0, unit="add-remove")
    bare = {
        field.name: getattr(plain, field.name) for field in dataclasses.fields(plain) if field.name != "stamp"
    }
    assert STAMP in str(type(plain)(**bare))
    picture = dc.plot(release(), "sex")
    assert STAMP in repr(type(picture)(picture.title, picture.panels))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, synthetic rows, a schema and a draft."""
    folder = tmp_path_factory.mktemp("curator")
    people().to_csv(folder / "people.csv", index=False)
    people(7).to_csv(folder / "synthetic.csv", index=False)
    SCHEMA.save(folder / "people.yaml")
    dc.Schema.draft(people()).save(folder / "draft.yaml")
    (folder / "dictionary.json").write_text(json.dumps(SCHEMA.to_frictionless()), encoding="utf-8")
    return folder


COMMANDS = {
    "draft": "schema draft {f}/people.csv -o {o}/new.yaml",
    "draft as JSON": "schema draft {f}/people.csv -o {o}/new.json",
    "show": "schema show {f}/draft.yaml",
    "export": "schema export {f}/draft.yaml -o {o}/new.yaml",
    "export for others": "schema export {f}/draft.yaml -o {o}/new.json",
    "import": "schema import {f}/dictionary.json -o {o}/new.yaml",
    "import as JSON": "schema import {f}/dictionary.json -o {o}/new.json",
    "check": "schema check {f}/people.yaml --data {f}/people.csv",
    "plan": "plan {f}/draft.yaml --epsilon 1 --unit add-remove",
    "evaluate": "evaluate {f}/people.csv {f}/people.yaml {f}/synthetic.csv --model 'age~sex' --report {o}/own",
    "compare": "compare {f}/people.csv {f}/people.yaml --methods uniform,independent --epsilons 1 --repeats 2 --unit add-remove --workers 1 -o {o}/own",
}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_print_and_write_the_stamp(
    command: str, as_json: bool, folder: Path, tmp_path: Path
) -> None:
    """First in the text, as the first key of JSON, and in every file, which nobody else can read."""
    args = COMMANDS[command].format(f=folder, o=tmp_path).replace("'", "").split()
    result = CliRunner().invoke(main, [*args, *(["--json"] if as_json else [])])
    assert result.exit_code == 0, result.output
    if as_json:
        plain = json.loads(result.stdout)
        assert next(iter(plain)) == "curator_only"
        assert plain["curator_only"].startswith(STAMP)
    else:
        assert result.stdout.startswith(STAMP)
    for path in tmp_path.rglob("*"):
        if path.is_dir():
            assert path.stat().st_mode & 0o777 == 0o700
        else:
            assert path.stat().st_mode & 0o777 == 0o600, path
            assert STAMP in path.read_text(encoding="utf-8"), path


def test_commands_about_signed_schemas_print_none(folder: Path) -> None:
    """A signature is a person's word that nothing in it is private."""
    for args in (["schema", "show", str(folder / "people.yaml")], ["plan", str(folder / "people.yaml"), "--epsilon", "1", "--unit", "replace"]):  # fmt: skip
        result = CliRunner().invoke(main, args)
        assert result.exit_code == 0
        assert STAMP not in result.stdout


def test_words_about_rows_must_say_something() -> None:
    """An empty word takes no stamp away; and a release needs none."""
    for call in (lambda word: dc.fit_models(people(), FORMULA, rows_from=word), lambda word: dc.combine([1.0], [1.0], rows_from=word)):  # fmt: skip
        with pytest.raises(ParameterError, match="must say in words"):
            call(" ")
    with pytest.raises(ParameterError, match="rows_from"):
        dc.fit_models(release(), FORMULA, draws=100, rows_from="a colleague")
    told = dc.fit_models(people(), FORMULA, rows_from="a colleague")
    assert "a colleague" in str(told)
    assert "a colleague" in told._repr_html_()
    assert dataclasses.replace(told, stamp="x").frame.attrs == {"curator_only": "x"}
