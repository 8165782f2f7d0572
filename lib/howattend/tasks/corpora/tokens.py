"""From a line of text to words: cleaning, placeholders, tokenisers, and what is no translation.

Cleaning makes one spelling of what differs only in typography: NFC, straight apostrophes and quotes, "..." for the
ellipsis, "oe" for the ligature, plain spaces and hyphens. A placeholder of a message (%s, %(count)d, {name}, ${name},
{{ name }}, %1) becomes the word ``<slot>``, a tag of HTML the word ``<tag>``: what is in them is for programs, and each
would be a word of its own that occurs once.

Two tokenisers, both lower-casing:

"plain"
    White space, with ``. , : ; ? !`` split off wherever they stand: the rule of the paper's own tools.
"words"
    The default. As plain, with three departures. Punctuation inside a number stays ("10:30", "1,000"). Brackets, quotes
    and other signs are split off too: interface text is full of them, and "(optional)" would be a word beside
    "optional". Clitics are words of their own, each where its language writes it: French l', d', qu', … before
    a word and -vous, -t-il, … behind a verb; English n't, 's, 're, … behind a word. "l'homme" is then an article and a
    noun, as "the man" is, so that a dictionary of the two languages can be read from the words. It lengthens French
    more than English; ``data/README.md`` has the length ratio with either tokeniser. Other hyphens stay within their
    word ("peut-être", "celui-ci", "read-only").

Either leaves its own output as it is when applied again.
"""

from __future__ import annotations

import html
import re
import unicodedata

SLOT, TAG = "<slot>", "<tag>"
LANGUAGES = ("en", "fr")
TOKENISERS = ("words", "plain")

# ---- cleaning -------------------------------------------------------------------------------------------------------

_SPELLINGS = str.maketrans(
    {
        **dict.fromkeys("\u2019\u2018\u02bc\u2032", "'"),
        **dict.fromkeys("«»“”„", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014", "-"),
        **dict.fromkeys("\u00ad\u200b\u200e\u200f\ufeff", ""),  # soft hyphen, marks of no width
        "…": "...",
        "œ": "oe",
        "Œ": "Oe",
    }
)
_SLOT = re.compile(
    r"""%\([\w .-]+\)[#0+-]?\d*(?:\.\d+)?[a-zA-Z]      # %(count)d
    |   %\d+\$[a-zA-Z]                                 # %1$s
    |   %[-+0#]?\d*(?:\.\d+)?(?:ll?|h|z)?[sdiufgxXcr](?![a-zA-Z])  # %s, %5.1f; not 100 %sure
    |   %\d+\b                                         # %1
    |   [$%]?\{\{[^{}]{0,60}\}\}                       # {{ name }}
    |   [$%]?\{[^{}]{0,60}\}                           # {name}, ${name}, %{name}, {0:.1f}
    |   \$[a-zA-Z_]\w*                                 # $name
    """,
    re.VERBOSE,
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<!--.*?-->", re.DOTALL)
_OWN = re.compile(rf"{SLOT}|{TAG}")
_ACCELERATOR = re.compile(r"(?<![A-Z])&(?=\w)|&(?=[a-z])")  # &File, E&xit; not R&D


def clean(text: str) -> str:
    """One line of text in one spelling, its placeholders and tags as ``<slot>`` and ``<tag>``; case stays."""
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _TAG.sub(lambda found: f" {found[0] if _OWN.fullmatch(found[0]) else TAG} ", text)
    text = _ACCELERATOR.sub("", _SLOT.sub(f" {SLOT} ", text))
    text = unicodedata.normalize("NFC", text).translate(_SPELLINGS).replace("''", '"')
    return " ".join(text.split())


# ---- tokenisers -----------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[.,:;?!]")
_NUMBER = r"\d+(?:[.,:]\d+)*(?!\w)"
_SIGN = r"\.{2,}|[^\w\s]"
_ENGLISH_CLITIC = r"(?:s|re|ve|ll|d|m)(?!-?\w)"
_ENGLISH = re.compile(
    rf"""{SLOT}|{TAG}|{_NUMBER}
    |   [^\W\d_]+(?=n't\b)                             # do + n't
    |   n't\b|'{_ENGLISH_CLITIC}                       # n't, 's, 're
    |   \w+(?:-\w+|'(?!{_ENGLISH_CLITIC})\w+)*         # read-only, o'clock
    |   {_SIGN}""",
    re.VERBOSE,
)
_PRONOUN = "(?:je|tu|il|elle|on|nous|vous|ils|elles|ce|moi|toi|le|la|les|lui|leur|y|en)"
_BEHIND = rf"-(?:t-)?{_PRONOUN}"
_FRENCH_CLITIC = rf"{_BEHIND}(?=(?:{_BEHIND})*(?!['-]?\w))"  # dis-le-moi; not arc-en-ciel
_FRENCH = re.compile(
    rf"""{SLOT}|{TAG}|{_NUMBER}
    |   aujourd'hui|rendez-vous
    |   (?:[cdjlmnst]|(?:(?:jus|lors|puis|quoi|quel)?qu))'  # l', qu', jusqu'
    |   {_FRENCH_CLITIC}                               # -vous, -t-il
    |   \w+(?:(?!{_FRENCH_CLITIC})-\w+|'\w+)*          # peut-être, celui-ci, presqu'ile
    |   {_SIGN}""",
    re.VERBOSE,
)
_PATTERNS = {"en": _ENGLISH, "fr": _FRENCH}


def tokenise(text: str, language: str, tokeniser: str = "words") -> list[str]:
    """The words of a cleaned line, in lower case.

    Args:
        text: as :func:`clean` returns it.
        language: "en" or "fr".
        tokeniser: "words" or "plain", as described above.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(map(repr, LANGUAGES))}, got {language!r}")
    if tokeniser not in TOKENISERS:
        raise ValueError(f"tokeniser must be one of {', '.join(map(repr, TOKENISERS))}, got {tokeniser!r}")
    if tokeniser == "plain":
        return _PLAIN.sub(lambda found: f" {found[0]} ", text.lower()).split()
    return _PATTERNS[language].findall(text.lower())


def sentences(text: str) -> list[str]:
    """A cleaned paragraph cut behind each end of sentence that a capital follows."""
    return [part for part in re.split(r"(?<=[a-zß-ÿ)\"> ][.!?]) +(?=[\"(]?[A-ZÀ-Þ])", text) if part]


# ---- what is no translation -----------------------------------------------------------------------------------------

# What a person would not read out: code, paths, addresses, options, table syntax, plurals left open.
_CODE = re.compile(
    r"[\\{}|<>=^~`*#@]|\w_|_\w|\w\(\)|\w\(s\)|::|//|\w\.[^\W\d_]{2,}|(?:^|\s)-+[a-zA-Z]|%\w|\[\w*\]|(?i:lorem ipsum)"
)
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
MOST_SLOTS = 2


def is_translation(source: str, target: str) -> bool:
    """Whether two cleaned lines can be a sentence and its translation.

    They are not where one reads like code, has hardly any letters or another number of placeholders or tags than the
    other, where placeholders and tags are more than a third of the words, where the two are equal or mostly
    untranslated, or where one is more than about 2.5 times as long.
    """
    bare = [_OWN.sub(" ", text) for text in (source, target)]
    for text in bare:
        if _CODE.search(text) or sum(map(str.isalpha, text)) <= len(text) / 2:
            return False
    for mark in (SLOT, TAG):
        marks = source.count(mark)
        if marks != target.count(mark) or marks > MOST_SLOTS or 3 * marks > len(source.split()):
            return False
    if source.lower() == target.lower():
        return False
    known, long_words = set(_LONG_WORD.findall(bare[0].lower())), _LONG_WORD.findall(bare[1].lower())
    if len(long_words) >= 3 and sum(word in known for word in long_words) > 0.7 * len(long_words):
        return False
    return 0.4 <= (len(bare[1]) + 4) / (len(bare[0]) + 4) <= 2.6
