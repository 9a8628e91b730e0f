"""The command line: one file a command, each a thin face of the library call of the same name.

To add a command, write `cli/<name>.py` with a click command called `command`, and add its line here, in the order of the flow.
"""

from dpcipher.cli.flow import Flow

COMMANDS = {
    "schema": "Draft, check, sign and show the public schema.",
    "plan": "Foresee cells, noise, error, memory and time. Reads no data.",
    "measure": "Measure noisy tables of private rows. Spends budget.",
    "synth": "Make synthetic rows from a release or from published tables.",
    "evaluate": "Score synthetic rows against private ones. Curator only.",
    "report": "Write a publishable page about a release and its rows.",
    "model": "Fit a regression to a release, with honest intervals.",
    "compare": "Compare methods on private rows. Curator only.",
    "reproduce": "Reproduce the paper's figures and tables. NOT PRIVATE.",
    "ledger": "Create a ledger, show what was spent, verify releases.",
    "demo": "Run the whole story on invented people.",
}

main = Flow(
    name="dpcipher",
    modules=COMMANDS,
    help="""Differentially private synthetic tables from low-order marginals.

    The commands follow the flow: a public schema, a plan, a release of noisy tables, synthetic rows. Only `measure` reads private
    rows to publish something about them; it charges a ledger first.

    \b
    Exit codes: 0 done, 1 refused or failed, 2 wrong usage.

    \b
    Example:
      dpcipher demo
    """,
)
