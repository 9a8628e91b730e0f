"""Draw the pictures of the pages *How it works* into docs/pictures/: `python docs/drawings/draw.py`.

Rows are invented from fixed seeds and so is nearly all noise: a picture changes only when what it shows does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from noise import reconcile, shrinkage
from plots import report_column, report_pair
from results import plot_column, plot_pair, plot_plan, what_comes_out

from engines import rows_engine, selection, table_engine
from tables import bias, equations, pairs

FOLDER = Path(__file__).parents[1] / "pictures"
PICTURES = {
    "pairs": pairs,
    "equations": equations,
    "bias": bias,
    "reconcile": reconcile,
    "denoise": shrinkage,
    "table-engine": table_engine,
    "rows-engine": rows_engine,
    "selection": selection,
    "what-comes-out": what_comes_out,
    "plot-plan": plot_plan,
    "plot-column": plot_column,
    "plot-pair": plot_pair,
    "report-column": report_column,
    "report-pair": report_pair,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
