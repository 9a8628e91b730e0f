"""The page results/judges.md: what every judge said of every file, ours beside the peers', and which jobs ended."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from common import markdown, write_page
from excerpt import FEATURES
from jobs import METHODS, OURS, REFERENCE, ROWS, SCORES, Line, job_of, read

from tables import NIST, PREDICTED

NAMES = {
    "ours": "**ours**",
    "ours_plain": "ours, rules not told",
    "ours_predict": "ours, told what is to be predicted",
    "binned": "the real rows, binned (not private)",
}
HEADINGS = {
    "k_marginal": "k-marginal ↑",
    "propensity": "propensity ↓",
    "inconsistent": "inconsistent % ↓",
    "slope": "slope off, all/groups ↓",
    "matched": "unique matched %",
}
ABOUT = """\
Every method learns from the same codes: one public schema for each table, with bins declared in advance (`benchmarks/judges/excerpt.py`,
`tables.py`), and codes become values again through that schema, uniformly within a bin. (ε, δ = 10⁻⁹), add-remove; all draw as many rows
as the data has. Ours is `dc.Cipher(epsilon, delta=…, workload="auto").fit(rows, schema)` through the public interface, told the rules that the
excerpt's data dictionary and NIST's published constraints state (and what follows from them for pairs); the peers are run without (of
them only dpsynth could be told some). Peers are as the package index has them, with their defaults, each cold in an environment of its own on one core, and stopped at 600 to 900 seconds of processor time; dpsynth is google's
repository. Numbers are means over seeds where there are several. The last line of each table is no method: the real rows through the same
bins, which says what the bins and each judge cost by themselves."""
NIST_ABOUT = """\
The metrics of SDNist 2.4 on the Massachusetts excerpt (7,634 persons, ACS 2019), called as its report calls them. *k-marginal* 0 to 1000,
1000 is best (pairs of columns, within each area where PUMA is among them); *propensity*: mean square error of a tree that tells the two files
apart, 0 is best; *inconsistent*: percentage of rows that break a rule of NIST's; *slope off*: how far the regression of income decile on
education is from that of the real rows, over all persons and averaged over eight groups of race and sex; *unique matched*: percentage of
the real rows that are unique and appear among the synthetic ones: neither good nor bad by itself, it rises with accuracy where there
are few combinations. Feature sets are the five with most submissions to NIST's Collaborative Research Cycle."""


def grouped() -> dict[tuple[str, str, float], list[Line]]:
    """The lines of each table, method and epsilon, with the scores of every judge that has seen the present rows."""
    said: dict[object, dict[str, Line]] = defaultdict(dict)
    for score in read(SCORES):
        if score["status"] == "ok":
            said[job_of(score)][score["judge"]] = score
    results: dict[tuple[str, str, float], list[Line]] = defaultdict(list)
    for line in read(ROWS):
        job = job_of(line)
        current = {
            judge: score["scores"]
            for judge, score in said[job].items()
            if score["stamp"].startswith(line["source"] + " ")
        }
        results[job.table, job.method, job.epsilon].append({**line, "scores": current})
    for epsilon in {key[2] for key in results}:  # the real rows know no epsilon
        for table in (*NIST, *PREDICTED):
            results[table, REFERENCE, epsilon] = results.get((table, REFERENCE, 1.0), [])
    return results


def mean(lines: Sequence[Line], pick: Callable[[Mapping[str, object]], float], judge: str) -> float:
    """The mean of a score over the seeds that have it; NaN where none has."""
    values = [pick(line["scores"][judge]) for line in lines if judge in line.get("scores", {})]
    return float(np.mean(values)) if values else float("nan")


SDNIST: dict[str, Callable[[Mapping], float]] = {
    "k_marginal": lambda s: s["k_marginal"],
    "propensity": lambda s: s["propensity"],
    "inconsistent": lambda s: s["inconsistent"]["any"],
    "matched": lambda s: s["matched"],
    "slope_all": lambda s: s["slope"].get("all", float("nan")),
    "slope_groups": lambda s: s["slope"].get("groups", float("nan")),
}


def label(method: str, lines: Sequence[Line]) -> str:
    seeds = sum(line["status"] == "ok" for line in lines)
    return NAMES.get(method, method.replace("_", " ")) + (f" ({seeds} seeds)" if seeds > 1 else "")


def ended(lines: Sequence[Line]) -> str:
    """How a job ended that has no scores: its status, with the cap where it was stopped."""
    last = lines[-1]
    stopped = f" at {last['cap']:.0f} s" if last["status"] == "timed out" else ""
    return "not judged" if last["status"] == "ok" else last["status"] + stopped


def seconds(lines: Sequence[Line]) -> str:
    known = [line["cpu_seconds"] for line in lines if "cpu_seconds" in line]
    return f"{np.mean(known):.0f}" if known else ""


def shown(value: float, form: str) -> str:
    return "" if np.isnan(value) else format(value, form)


def order() -> list[str]:
    return [*OURS, *METHODS, REFERENCE]


def nist_section(results: Mapping, epsilon: float) -> str:
    """All feature sets at one epsilon."""
    rows = []
    for table in NIST:
        for method in order():
            lines = results.get((table, method, epsilon), [])
            if not lines:
                continue
            score = {name: mean(lines, pick, "sdnist") for name, pick in SDNIST.items()}
            slope = (
                ""
                if np.isnan(score["slope_all"])
                else f"{score['slope_all']:.2f}/{score['slope_groups']:.2f}"
            )
            known = not np.isnan(score["k_marginal"])
            cells = [
                shown(score["k_marginal"], ".0f"),
                shown(score["propensity"], ".4f"),
                shown(score["inconsistent"], ".1f"),
                slope,
                shown(score["matched"], ".1f"),
            ]
            rows.append(
                [
                    table,
                    label(method, lines),
                    *(cells if known else [ended(lines), "", "", "", ""]),
                    seconds(lines),
                ]
            )
    return markdown(["features", "method", *HEADINGS.values(), "processor s"], rows)


def against_best(results: Mapping, epsilons: Iterable[float]) -> str:
    """Ours beside the best peer in each metric, feature set and epsilon, and how often it is at least as good."""
    rows, wins, cells = [], dict.fromkeys(("k_marginal", "propensity", "inconsistent"), 0), 0
    unjudged, behind = [], []
    for epsilon in epsilons:
        for table in NIST:
            peers = {m: results.get((table, m, epsilon), []) for m in METHODS}
            mine = results.get((table, "ours", epsilon), [])
            row, complete = [table, f"{epsilon:g}"], True
            for name, form in (("k_marginal", ".0f"), ("propensity", ".4f"), ("inconsistent", ".1f")):
                sign = -1 if name == "k_marginal" else 1
                values = {m: mean(lines, SDNIST[name], "sdnist") for m, lines in peers.items()}
                values = {m: value for m, value in values.items() if not np.isnan(value)}
                own = mean(mine, SDNIST[name], "sdnist")
                if not values or np.isnan(own):
                    complete = False
                    continue
                who = min(values, key=lambda m: sign * values[m])
                if sign * own <= sign * values[who]:
                    wins[name] += 1
                else:
                    behind.append(f"{name.replace('_', '-')} of {table} at {epsilon:g}")
                row += [format(own, form), f"{values[who]:{form}} ({who.replace('_', ' ')})"]
            if complete:
                cells += 1
                rows.append(row)
            else:
                unjudged.append((table, epsilon))
    head = ["features", "ε"]
    for name in ("k-marginal ↑", "propensity ↓", "inconsistent % ↓"):
        head += [f"{name} ours", "best peer"]
    told = ", ".join(f"{name.replace('_', '-')} {count} of {cells}" for name, count in wins.items())
    missing = ", ".join(f"{name} at {epsilon:g}" for name, epsilon in unjudged) or "none"
    lost = ", ".join(behind) or "nowhere"
    return (
        f"Ours at least as good as the best peer judged so far: {told}. Behind: {lost}. One seed for a peer unless its line says otherwise: small "
        f"differences mean little. Feature sets and ε where no peer has been judged yet: {missing}.\n\n"
    ) + markdown(head, rows)


def sdmetrics_section(results: Mapping, epsilon: float) -> str:
    rows = []
    for table in (*NIST, *PREDICTED):
        for method in order():
            lines = results.get((table, method, epsilon), [])
            names = ("quality", "shapes", "pair trends", "diagnostic")
            score = [mean(lines, lambda s, name=name: s[name], "sdmetrics") for name in names]
            if lines and not np.isnan(score[0]):
                rows.append([table, label(method, lines), *(f"{value:.3f}" for value in score)])
    return markdown(["table", "method", "quality", "column shapes", "pair trends", "diagnostic"], rows)


def boosting_section(results: Mapping, epsilons: Sequence[float]) -> str:
    rows = []
    for epsilon in epsilons:
        for method in order():
            lines = {table: results.get((table, method, epsilon), []) for table in PREDICTED}
            score = {t: mean(ls, lambda s: s["auc"], "boosting") for t, ls in lines.items()}
            if not any(lines.values()):
                continue
            cells = ["" if not ls else shown(score[t], ".3f") or ended(ls) for t, ls in lines.items()]
            rows.append([f"{epsilon:g}", NAMES.get(method, method.replace("_", " ")), *cells])
    return markdown(
        ["ε", "trained on", "adult: income > 50K", "bank: y", "ACS: income in the upper half"], rows
    )


def versions() -> str:
    """What ran, in one line each."""
    peers = {line["method"]: line["version"] for line in read(ROWS) if line.get("version")}
    judges = {line["judge"]: line["version"] for line in read(SCORES)}
    sources = {line["source"] for line in read(ROWS) if line["method"] in OURS}
    told = [f"- {name.replace('_', ' ')}: {version}" for name, version in {**judges, **peers}.items()]
    return "\n".join([*told, f"- ours: source {', '.join(sorted(sources))}"])


def write_judges() -> None:
    """Write the page."""
    results = grouped()
    epsilons = sorted({key[2] for key in results if key[1] in OURS})
    nist = [e for e in epsilons if any(results.get((table, "ours", e)) for table in NIST)]
    predicted = [e for e in epsilons if any(results.get((table, "ours", e)) for table in PREDICTED)]
    sets = "\n".join(f"- {name}: {', '.join(FEATURES[name].split())}" for name in NIST)
    sections = [ABOUT, "## NIST's SDNist", NIST_ABOUT, sets, against_best(results, nist)]
    for epsilon in nist:
        sections += [f"### ε = {epsilon:g}", nist_section(results, epsilon)]
    sections += [
        "## Train on synthetic, test on real",
        "Area under the curve of scikit-learn's histogram gradient boosting (its defaults), trained on synthetic rows and tested on a fifth of "
        "the real rows, which no method saw. ACS is the excerpt's simple feature set without the two incomes. A method without a line has not been run here yet.",
        boosting_section(results, predicted),
        "## sdmetrics",
        "The quality and diagnostic reports, 0 to 1, 1 is best.",
    ]
    for epsilon in epsilons:
        sections += [f"### ε = {epsilon:g}", sdmetrics_section(results, epsilon)]
    sections += ["## What ran", versions()]
    write_page("judges", "Judged from outside", "python benchmarks/judges/judge.py page", sections)
