"""Draw the pictures of the pages *How it works* into docs/pictures/: `python docs/drawings/draw.py`.

Rows are invented from fixed seeds and so is nearly all noise: a picture changes only when what it shows does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from noise import reconcile, shrinkage
from results import what_comes_out

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
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
