"""Where the book shows a claim, and a claim in a few words; both in one place, so that a test can try every link."""

from __future__ import annotations

#: The chapter and the figure (its label, a cell's metadata `name`) that show what a claim is about.
FIGURES: dict[str, tuple[str, str]] = {
    "H1": ("ledger", "fig-h1"),
    **dict.fromkeys(("O1", "O2"), ("one-to-one", "fig-attention")),
    **dict.fromkeys(("O3", "O10"), ("one-to-one", "fig-paths")),
    **dict.fromkeys(("O4", "O5", "O6", "O7", "O8"), ("one-to-one", "fig-clouds")),
    **dict.fromkeys(("O9", "O12"), ("conditions", "fig-readouts")),
    "O11": ("model-features", "fig-three-tasks"),
    "R1": ("reversed", "fig-reversed-attention"),
    "S1": ("sort", "fig-sort-terms"),
    "E1": ("escan", "fig-rate"),
    **dict.fromkeys(("E2", "E3"), ("model-features", "fig-5a")),
    "E4": ("model-features", "fig-5c"),
    "E5": ("model-features", "fig-5b-peaks"),
    "E6": ("model-features", "fig-5d"),
    **dict.fromkeys(("E7", "E8"), ("escan", "fig-escan-attention")),
    "E9": ("escan", "fig-escan-clouds"),
    **dict.fromkeys(("D1", "D2", "C7"), ("twice-left", "fig-clusters")),
    **dict.fromkeys(("D3", "C5", "C8"), ("twice-left", "fig-parts")),
    "D4": ("twice-left", "fig-offsets"),
    "T1": ("translation", "fig-translation-attention"),
    **dict.fromkeys(("T2", "T8"), ("translation", "fig-translation-paths")),
    "T3": ("translation", "fig-translation-terms"),
    "T4": ("translation", "fig-translation-variance"),
    **dict.fromkeys(("T5", "T7"), ("translation", "fig-translation-offsets")),
    "T6": ("translation", "fig-translation-dictionary"),
    "T9": ("translation", "fig-translation-registers"),
    "T10": ("model-features", "fig-5b-translation"),
    **dict.fromkeys(("V1", "V2", "V3"), ("conditions", "fig-cells")),
    "V4": ("conditions", "fig-tree-purity"),
    **dict.fromkeys(("C1", "C2", "C6"), ("twice-left", "fig-edits")),
    **dict.fromkeys(("C3", "C4"), ("twice-left", "fig-two")),
}


def address(claim: str) -> str:
    """Where a claim stands in the ledger, from any page of the book."""
    return f"ledger.html#claim-{claim}"


#: A claim of the paper in a few words, for the picture of all.
SHORT: dict[str, str] = {
    "H1": "more alike, more temporal",
    "O1": "the task is solved",
    "O2": "attention from position",
    "O3": "paths in few dimensions",
    "O4": "encoder deltas negligible",
    "O5": "decoder: temporal ≫ rest",
    "O6": "temporal ⊥ input-delta",
    "O7": "readouts are a dictionary",
    "O8": "words form a simplex",
    "O9": "context carries the logits",
    "O10": "VED: one continuous path",
    "O11": "temporal share, variance",
    "O12": "readouts are orthogonal",
    "R1": "anti-diagonal by position",
    "S1": "words, not position",
    "E1": "the task is solved",
    "E2": "μᴰ·μᴱ has 77 % of the score",
    "E3": "three terms have 87 % of it",
    "E4": "variance drops by 85 or 90 %",
    "E5": "peak at the predicted offset",
    "E6": "readouts are a dictionary",
    "E7": "AED looks at the ends of phrases",
    "E8": "AO looks before “twice”",
    "E9": "AED's deltas matter, AO's do not",
    "D1": "AED: “twice” splits by its verb",
    "D2": "AO: “twice” is one cluster",
    "D3": "AO: “twice” hides",
    "D4": "AO: signs of “and”, “twice”, “left”",
    "T1": "attention near the diagonal",
    "T2": "alignment clearest early",
    "T3": "no term dominates",
    "T4": "variance drop is small",
    "T5": "drift, as French is longer",
    "T6": "readouts are a dictionary",
    "T7": "late steps fall off more slowly",
    "T8": "less diagonal than extended SCAN",
    "V1": "alike with LSTM, UGRNN",
    "V2": "alike with learned attention",
    "V3": "alike with feedforward AO",
    "V4": "VED: tree in the encoder",
}

TASKS = {
    "one_to_one": "one-to-one",
    "reversed": "reversed",
    "sort": "sort",
    "escan": "extended SCAN",
    "translation": "translation",
}
