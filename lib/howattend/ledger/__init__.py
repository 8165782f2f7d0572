"""The ledger: every claim over all seeds and under all conditions, from the recorded rows alone.

No network is loaded. A row is a claim on a run; its verdict is that of its seeds. A claim's verdict is that of the runs
of the book's recipe ("base"), and, where one of them fails, of the conditions under which the same task and
architecture were measured, too.

    book = ledger.read()
    book.rows                                    # a row a claim and run
    print(book.of("O2", "one_to_one-aed-gru"))   # 0.96 (0.95 to 0.97; 5 seeds)
    book.verdict("O8"), book.conditions("O8")    # what it depends on, and all that was tried
"""

from howattend.claims.criteria import address
from howattend.ledger.links import FIGURES, TASKS
from howattend.ledger.names import KINDS, VARIANTS, departures, kind_of, limits
from howattend.ledger.page import Page, counts
from howattend.ledger.picture import nearness, summary
from howattend.ledger.prose import told
from howattend.ledger.records import ALL_RUNS, Ledger, LedgerError, assemble, read
from howattend.ledger.verdicts import (
    CONDITION,
    FEW,
    NOT,
    REPORTED,
    REPRODUCED,
    UNMEASURED,
    VERDICTS,
    ClaimVerdict,
    Over,
    say,
)

__all__ = [
    "ALL_RUNS",
    "CONDITION",
    "FEW",
    "FIGURES",
    "KINDS",
    "NOT",
    "REPORTED",
    "REPRODUCED",
    "TASKS",
    "UNMEASURED",
    "VARIANTS",
    "VERDICTS",
    "ClaimVerdict",
    "Ledger",
    "LedgerError",
    "Over",
    "Page",
    "address",
    "assemble",
    "counts",
    "departures",
    "kind_of",
    "limits",
    "nearness",
    "read",
    "say",
    "summary",
    "told",
]
