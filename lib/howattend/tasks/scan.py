"""SCAN (Lake & Baroni 2018): commands of a small grammar and the actions they stand for.

The grammar, whose 20,910 commands are all of SCAN:

    command  →  phrase  |  phrase and phrase  |  phrase after phrase
    phrase   →  motion  |  motion twice  |  motion thrice
    motion   →  verb  |  verb direction  |  verb opposite direction  |  verb around direction
    verb     →  walk  |  run  |  jump  |  look  |  turn (never without a direction)
    direction → left  |  right

Its meaning: a verb is its own action (turn has none), a direction before it a turn; "opposite" turns twice before the
action, "around" turns and acts four times; "twice" and "thrice" repeat; "x and y" is x, then y; "x after y" is y, then
x. Commands and actions are strings of words, in the action names of Aitken et al.: WALK, RUN, JUMP, LOOK, LTURN, RTURN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

VERBS = {"walk": "WALK", "run": "RUN", "jump": "JUMP", "look": "LOOK"}
DIRECTIONS = {"left": "LTURN", "right": "RTURN"}
TURN = "turn"
MANNERS = ("opposite", "around")
REPEATS = {"twice": 2, "thrice": 3}
CONJUNCTIONS = ("and", "after")
WORDS = (*VERBS, TURN, *DIRECTIONS, *MANNERS, *REPEATS, *CONJUNCTIONS)
ACTIONS = (*VERBS.values(), *DIRECTIONS.values())

RULE = (
    "a command is one phrase, or two joined by one 'and' or 'after'; a phrase is a verb (walk, run, jump, look, or "
    "turn with a direction), then optionally [opposite | around] left | right, then optionally twice | thrice"
)

#: The hub's copy of SCAN. Its main branch holds a script, which ``datasets`` no longer runs; this one holds parquet.
HUB_REPOSITORY, HUB_REVISION, HUB_FOLDER = "scan-tasks/scan-tasks", "refs/convert/parquet", "simple"
HUB_COLUMNS = ("commands", "actions")
HUB_ACTIONS = {
    **{f"I_{action}": action for action in VERBS.values()},
    "I_TURN_LEFT": "LTURN",
    "I_TURN_RIGHT": "RTURN",
}


def generate() -> list[tuple[str, str]]:
    """All 20,910 pairs (command, actions) of the grammar, both as strings of words separated by single spaces."""
    phrases = list(_phrases())
    commands = [*phrases, *((*x, joint, *y) for joint, x, y in product(CONJUNCTIONS, phrases, phrases))]
    return [(" ".join(command), interpret(command)) for command in commands]


def _phrases() -> Iterator[tuple[str, ...]]:
    for verb, repeat in product((*VERBS, TURN), ((), *((word,) for word in REPEATS))):
        if verb != TURN:
            yield (verb, *repeat)
        for manner, direction in product(((), *((word,) for word in MANNERS)), DIRECTIONS):
            yield (verb, *manner, direction, *repeat)


def interpret(command: str | Sequence[str]) -> str:
    """The actions of a command, as a string of words: interpret("jump left twice") == "LTURN JUMP LTURN JUMP".

    Args:
        command: words separated by white space, or a sequence of words.

    Raises:
        ValueError: if the command is not of the grammar; the message names the place, the valid words and the rule.
    """
    words = command.split() if isinstance(command, str) else list(command)
    said = " ".join(map(str, words))
    for word in words:
        if word not in WORDS:
            raise ValueError(f"unknown word {word!r} in the command {said!r}; SCAN's words are {', '.join(WORDS)}")
    joints = [index for index, word in enumerate(words) if word in CONJUNCTIONS]
    if len(joints) > 1:
        raise ValueError(_broken(said, f"it has {len(joints)} conjunctions, SCAN allows one"))
    if not joints:
        return " ".join(_phrase(words, said))
    first, second = _phrase(words[: joints[0]], said), _phrase(words[joints[0] + 1 :], said)
    return " ".join(first + second if words[joints[0]] == "and" else second + first)


def _phrase(words: list[str], said: str) -> list[str]:
    """The actions of one phrase."""
    rest = list(words)
    if not rest:
        raise ValueError(_broken(said, "a phrase is empty"))
    verb = rest.pop(0)
    if verb not in VERBS and verb != TURN:
        raise ValueError(_broken(said, f"a phrase begins with {verb!r} instead of a verb"))
    manner = rest.pop(0) if rest and rest[0] in MANNERS else ""
    direction = rest.pop(0) if rest and rest[0] in DIRECTIONS else ""
    if not direction and (manner or verb == TURN):
        raise ValueError(_broken(said, f"{manner or verb!r} must be followed by left or right"))
    times = REPEATS[rest.pop(0)] if rest and rest[0] in REPEATS else 1
    if rest:
        raise ValueError(_broken(said, f"{rest[0]!r} cannot follow {words[len(words) - len(rest) - 1]!r}"))
    turns = [DIRECTIONS[direction]] * (2 if manner == "opposite" else 1) if direction else []
    acts = [] if verb == TURN else [VERBS[verb]]
    return (turns + acts) * (4 if manner == "around" else 1) * times


def _broken(said: str, what: str) -> str:
    return f"{said!r} is no command of SCAN: {what}. The rule: {RULE}. SCAN's words are {', '.join(WORDS)}"


# ---- the copy on the hub, as a cross-check ------------------------------------------------------------------------


def load(
    repository: str | Path = HUB_REPOSITORY,
    data_dir: str | None = HUB_FOLDER,
    revision: str | None = HUB_REVISION,
    columns: tuple[str, str] = HUB_COLUMNS,
    action_names: Mapping[str, str] = HUB_ACTIONS,
) -> list[tuple[str, str]]:
    """The pairs of a published copy of SCAN, all splits together, in this module's action names.

    Nothing in the book needs it: :func:`generate` makes the same pairs without network. See :func:`compare`.

    Args:
        repository: a data set on the Hugging Face hub, or a local folder laid out like one.
        data_dir: the folder in it, which chooses SCAN's split; None for all of it.
        revision: branch, tag or commit; ignored for a local folder.
        columns: names of the columns with commands and with actions.
        action_names: the copy's action names → this module's. Names that are this module's already stay.

    Raises:
        ModuleNotFoundError: without the package ``datasets``.
        ConnectionError: if the copy cannot be reached.
        ValueError: if it lacks a column, or holds an empty cell or an action that has no name here.
    """
    try:
        import datasets
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "reading SCAN's copy on the hub needs the package datasets: pip install datasets; or use scan.generate(), "
            "which makes the same pairs without it"
        ) from None
    local = Path(repository).is_dir()
    try:
        splits = datasets.load_dataset(str(repository), data_dir=data_dir, revision=None if local else revision)
    except (OSError, RuntimeError, ValueError) as error:  # offline, no such repository or folder, a script, no data
        raise ConnectionError(
            f"SCAN could not be read from {repository!s} (data_dir {data_dir!r}, revision {revision!r}): {error}. "
            "Check the names and the connection to the hub; without a connection pass a local folder of the same "
            "layout as repository, or use scan.generate(), which makes the same pairs"
        ) from error
    pairs = []
    for name, split in splits.items():
        if missing := [column for column in columns if column not in split.column_names]:
            raise ValueError(
                f"columns must be names of columns of {repository!s}, which has {', '.join(split.column_names)}, "
                f"got {', '.join(missing)}"
            )
        for row, (command, actions) in enumerate(zip(split[columns[0]], split[columns[1]], strict=True)):
            for column, cell in zip(columns, (command, actions), strict=True):
                if not isinstance(cell, str) or not cell.strip():
                    raise ValueError(
                        f"every row of {repository!s} must hold a command and its actions, as words, but row {row} of "
                        f"its split {name!r} has {cell!r} in the column {column!r}: mend it, or name other columns"
                    )
            pairs.append((" ".join(command.split()), _rename(actions, action_names)))
    return pairs


def _rename(actions: str, names: Mapping[str, str]) -> str:
    renamed = [names.get(action, action) for action in actions.split()]
    for action in renamed:
        if action not in ACTIONS:
            raise ValueError(
                f"action_names must name every action of the copy, but has no entry for {action!r}; the actions here "
                f"are {', '.join(ACTIONS)}"
            )
    return " ".join(renamed)


@dataclass(frozen=True)
class Comparison:
    """What a published copy of SCAN and the grammar do not share."""

    missing: tuple[str, ...]  # commands of the grammar that the copy lacks
    unknown: tuple[str, ...]  # commands of the copy that the grammar lacks
    different: tuple[tuple[str, str, str], ...]  # command, the copy's actions, the grammar's

    @property
    def agrees(self) -> bool:
        return not (self.missing or self.unknown or self.different)


def compare(pairs: Iterable[tuple[str, str]]) -> Comparison:
    """A copy of SCAN, such as :func:`load` returns, against the grammar; pairs may be repeated, their order is free."""
    grammar, seen = dict(generate()), set()
    unknown, different = {}, {}
    for command, actions in pairs:
        seen.add(command)
        if command not in grammar:
            unknown[command] = None
        elif actions != grammar[command]:
            different[command, actions, grammar[command]] = None
    missing = tuple(command for command in grammar if command not in seen)
    return Comparison(missing, tuple(unknown), tuple(different))
