"""What is done about the noise: reconcile, then denoise."""

import numpy as np
from pieces import counts, heat, line, noisy, picture, town

import dpcipher as dc
from dpcipher.drawing.svg import element, text


def reconcile() -> str:
    """Two tables that disagree about the same people, and the estimate that uses both."""
    schema, rows = town()
    first, second = (
        noisy(counts(schema, rows, ("age", "work")), 6, 3),
        noisy(counts(schema, rows, ("school", "work")), 6, 4),
    )
    release = dc.Release.from_tables({("age", "work"): first, ("school", "work"): second}, schema, scale=6)
    sd = np.sqrt(2) * 6
    low, high = (float(np.asarray(end)[1]) for end in release.interval("work"))
    estimates = {
        "age × work says": (first[:, 1].sum(), 1.96 * sd * np.sqrt(3), "b"),
        "school × work says": (second[:, 1].sum(), 1.96 * sd * np.sqrt(2), "b"),
        "both together": ((low + high) / 2, (high - low) / 2, "a"),
    }
    truth = counts(schema, rows, ("work",))[1]
    least, most = truth - 60, truth + 60

    def place(value: float) -> float:
        return 190 + 490 * (value - least) / (most - least)

    parts = [
        text(20, 30, "How many people work?", class_="ink head"),
        line(place(truth), 44, place(truth), 176, "faint", 2),
    ]
    for number, (label, (value, margin, style)) in enumerate(estimates.items()):
        y = 70 + 42 * number
        parts += [
            text(20, y + 4, label, class_="ink"),
            line(place(value - margin), y, place(value + margin), y, f"s{style}", 3),
        ]
        parts += [
            element("circle", cx=place(value), cy=y, r=6, class_=style),
            text(place(value), y - 12, f"{value:.0f}", anchor="middle", class_="ink"),
        ]
    parts.append(text(place(truth), 194, "the truth, which nobody sees", anchor="middle", class_="soft"))
    return picture(
        720,
        210,
        parts,
        title="Reconcile",
        description="Two noisy tables give different numbers of people in work; the precision-weighted estimate of both has a shorter margin.",
    )


def shrinkage() -> str:
    """What a pair shows beyond its margins, before and after denoising, when most of it is noise and when it is not."""
    rng = np.random.default_rng(9)
    schema = dc.Schema.from_domain({"a": 6, "b": 6})
    weak = rng.multinomial(2000, np.full(36, 1 / 36)).reshape(6, 6).astype(float)
    strong = np.add.outer(np.arange(6), -np.arange(6))
    strong = np.exp(-0.35 * strong**2)
    strong = rng.multinomial(2000, (strong / strong.sum()).ravel()).reshape(6, 6).astype(float)
    parts = []
    for left, label, truth in (
        (20, "columns that have nothing to do with each other", weak),
        (380, "columns that go together", strong),
    ):
        release = dc.Release.from_tables({("a", "b"): noisy(truth, 25, 8)}, schema, scale=25)
        table = release.reconciled.table((0, 1))
        denoised = table.sum() * np.asarray(dc.solve(release).project(("a", "b")))
        parts.append(text(left, 30, label, class_="ink head"))
        for number, (words, cells) in enumerate(
            (("measured", table), ("denoised", denoised), ("the truth", truth))
        ):
            parts.append(text(left + 110 * number, 56, words, class_="soft"))
            parts.append(heat(left + 110 * number, 64, cells, truth.max()))
        errors = [float(np.abs(cells - truth).sum() / 2 / truth.sum()) for cells in (table, denoised)]
        parts += [
            text(left + 110 * number, 182, f"{value:.0%} off", class_="a")
            for number, value in enumerate(errors)
        ]
    return picture(
        720,
        200,
        parts,
        title="Denoise",
        description="Where a pair is mostly noise it is shrunk toward what its margins say; where the columns go together the pattern stays.",
    )
