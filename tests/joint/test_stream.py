"""Rows in a stream: the same law as one draw, whoever draws which batch, and files that do not depend on how many draw."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ruled import NAMES, SMALL, broken

from dpcipher.errors import ParameterError
from dpcipher.io.write import write_table
from dpcipher.joint.chain import Chain
from dpcipher.joint.core import Core
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint
from dpcipher.joint.link import Link
from dpcipher.joint.network import Network, Node
from dpcipher.joint.report import SolveReport
from dpcipher.joint.stream import _in_order
from dpcipher.schema import Schema, column

SHAPE = (3, 4, 2)
COLUMNS = (
    column("colour", "categorical", levels=["red", "=green", "blue"]),
    column("size", "integer", min=0, max=19, bins=4),
    column("kind", "categorical", levels=["a"], missing="level"),
)


def table(shape: tuple[int, ...] = SHAPE, seed: int = 0) -> np.ndarray:
    """Probabilities of all cells."""
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), 0.4)).reshape(shape)


def cores() -> dict[str, Core]:
    """One core of each kind, over the same columns."""
    rng = np.random.default_rng(1)
    one = [rng.dirichlet(np.ones(size)) for size in SHAPE]
    given = rng.dirichlet(np.ones(4), size=3)
    nothing = np.zeros((0, 3))
    links = (
        Link(0, (), (), one[0], nothing, nothing),
        Link(1, ((0,),), (3,), one[1], np.log(given / one[1]), given),
        Link(2, (), (), one[2], np.zeros((0, 2)), np.zeros((0, 2))),
    )
    nodes = (Node((0,), (), one[0]), Node((1,), (0,), given), Node((2,), (), one[2]))
    return {"dense": DenseTable(table()), "chain": Chain(SHAPE, links), "network": Network(SHAPE, nodes)}


def joint(core: Core | None = None, schema: Schema | None = None) -> Joint:
    """A joint over the columns above."""
    report = SolveReport("table", why="as asked")
    return Joint(schema or Schema(COLUMNS), core or cores()["dense"], 1000, report)


@pytest.mark.parametrize("kind", ["dense", "chain", "network"])
@pytest.mark.parametrize("independent", [False, True])
def test_a_batch_needs_no_other_batch(kind: str, independent: bool) -> None:
    """Batches drawn alone, backwards and from another stream of the same seed are those of the stream; `sample` has them one after another."""
    source = joint(cores()[kind])
    options = {"seed": 7, "independent": independent}
    whole = list(source.stream(1_000, size=120, **options))
    again = source.stream(1_000, size=120, **options)
    backwards = [again.batch(number) for number in reversed(range(len(again)))]
    assert len(again) == 9
    assert all(mine.equals(other) for mine, other in zip(whole, backwards[::-1], strict=True))
    rows = pa.concat_tables(source.stream(1_000, **options))
    assert source.sample(1_000, **options).equals(rows.to_pandas())


def test_no_cell_is_off_by_a_whole_row_over_all_batches() -> None:
    """The whole stream is one even draw: its counts are within one row of what is expected, and so are those of every batch."""
    source = joint()
    stream = source.stream(10_007, seed=3, size=500)
    wanted = table()
    counts = np.zeros(SHAPE)
    for number in range(len(stream)):
        codes = stream.coded_batch(number)[0]
        own = np.zeros(SHAPE)
        np.add.at(own, tuple(codes.T), 1)
        assert np.abs(own - 10_007 / len(stream) * wanted).max() < 1 + 1e-6
        counts += own
    assert counts.sum() == 10_007
    assert np.abs(counts - 10_007 * wanted).max() < 1 + 1e-6


def test_every_batch_follows_the_same_law() -> None:
    """Over many seeds the mean counts of the first batch, and of the last, are those of the table: no batch has the lower end of every step."""
    cells = table((4, 5), seed=2)
    source = joint(DenseTable(cells), Schema.from_domain({"a": 4, "b": 5}))
    for number in (0, 9):
        mean = np.zeros(cells.shape)
        for seed in range(3000):
            codes = source.stream(40, seed=seed, size=4).coded_batch(number)[0]
            np.add.at(mean, tuple(codes.T), 1 / 3000)
        assert np.abs(mean - 4 * cells).max() < 0.05  # four standard errors of the commonest cell


def test_independent_batches_have_multinomial_spread() -> None:
    """The χ² over all batches of independent rows is near its degrees of freedom, also where many uniforms are sorted first."""
    wanted = table((3, 4), seed=4)
    core = DenseTable(wanted)
    values = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        codes = np.concatenate(list(core.sample(40_000, rng, independent=True, chunk=20_000)))
        counts = np.bincount(codes @ [4, 1], minlength=12).reshape(3, 4)
        values.append(float(((counts - 40_000 * wanted) ** 2 / (40_000 * wanted)).sum()))
    assert 8.5 < np.mean(values) < 13.5  # 11 degrees of freedom, standard error .74


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_is_the_same_for_any_number_of_workers(ending: str, tmp_path) -> None:
    """One worker or three write the same bytes, and they are the rows of `batches` as texts and numbers."""
    source = joint()
    for workers in (1, 3):
        rows = source.stream(5_000, seed=1, size=300)
        rows.write(tmp_path / f"{workers}.{ending}", workers=workers, formulas="keep")
    one, three = (tmp_path / f"{workers}.{ending}" for workers in (1, 3))
    assert one.read_bytes() == three.read_bytes()
    plain = pa.concat_tables(source.stream(5_000, seed=1, size=300))
    write_table(tmp_path / f"plain.{ending}", plain, formulas="keep")
    if ending == "parquet":
        assert pq.read_table(one).equals(pq.read_table(tmp_path / "plain.parquet"))
        assert pq.read_table(one).schema.equals(plain.schema)
    else:
        assert one.read_bytes() == (tmp_path / "plain.csv").read_bytes()


def test_texts_are_stored_once_in_parquet(tmp_path) -> None:
    """Every group of rows holds its texts as a dictionary, whose entries are not repeated for each row."""
    joint().stream(50_000, seed=1).write(tmp_path / "rows.parquet")
    column = pq.ParquetFile(tmp_path / "rows.parquet").metadata.row_group(0).column(0)
    assert column.has_dictionary_page
    assert column.total_uncompressed_size < 50_000


def test_streams_keep_rules_and_conditions() -> None:
    """Every row of every batch keeps the rules and has the value that was asked for, and the tally has seen them all."""
    shape = SMALL.shape
    source = joint(DenseTable(np.full(shape, 1 / np.prod(shape))), SMALL)
    stream = source.stream(6_000, seed=2, given={"age": 20}, size=1_000)
    tally = source.tally()
    rows = pa.concat_tables(stream.batch(number, tally=tally) for number in range(len(stream))).to_pandas()
    assert list(rows) == list(NAMES)
    assert (rows["age"] == 20).all()
    assert not sum(broken(rows).values())
    assert tally.n_rows == 6_000
    assert tally.redrawn + tally.values > 0


def test_a_file_counts_what_rules_cost(tmp_path) -> None:
    """Tallies of batches that were drawn in several threads add up to that of one draw."""
    shape = SMALL.shape
    source = joint(DenseTable(np.full(shape, 1 / np.prod(shape))), SMALL)
    written, drawn = source.tally(), source.tally()
    source.stream(4_000, seed=2, size=700).write(tmp_path / "rows.parquet", workers=3, tally=written)
    rows = source.stream(4_000, seed=2, size=700)
    for number in range(len(rows)):
        rows.batch(number, tally=drawn)
    assert written.cost == drawn.cost
    assert written.cost.redrawn > 0


def test_few_batches_are_held_at_once() -> None:
    """No batch is drawn long before it is asked for, and a draw that fails is heard of."""
    lock, drawn = threading.Lock(), []

    def draw(number: int) -> int:
        with lock:
            drawn.append(number)
        if number == 50:
            raise RuntimeError("the fiftieth")
        return number

    rows = _in_order(draw, 100, 3)
    assert [next(rows) for _ in range(10)] == list(range(10))
    assert len(drawn) <= 14
    with pytest.raises(RuntimeError, match="fiftieth"):
        list(rows)
    assert len(drawn) < 60


def test_what_cannot_be_drawn_is_refused_at_once() -> None:
    """A number of a batch, a size or a number of workers that makes no sense, and a condition that no row meets."""
    stream = joint().stream(100, size=10)
    with pytest.raises(ParameterError, match="must lie in 0"):
        stream.batch(10)
    with pytest.raises(ParameterError, match="size"):
        joint().stream(100, size=0)
    with pytest.raises(ParameterError, match="workers"):
        stream.write("rows.csv", workers=0)
    with pytest.raises(ParameterError, match="colour"):
        joint().stream(100, given={"colour": "mauve"})
