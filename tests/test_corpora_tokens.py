"""Cleaning, the two tokenisers, and what is no translation; every sentence here is our own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howattend.tasks.corpora.tokens import SLOT, TAG, clean, is_translation, sentences, tokenise

# ---- cleaning ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("The  cat’s\n\tbed ", "The cat's bed"),
        ("« Œuvre » – “œuf”…", '" Oeuvre " - "oeuf"...'),
        ("un\u00a0chat\u202f!", "un chat !"),
        ("co\u00adop\u200beration", "cooperation"),
        ("e\u0301te\u0301", "été"),  # combining accents
        ("Salt &amp; pepper", "Salt & pepper"),
        ("caf&eacute;", "café"),
        ("&Open, E&xit and R&D", "Open, Exit and R&D"),
        ("''quoted''", '"quoted"'),
        ("", ""),
    ],
)
def test_one_spelling_of_what_differs_in_typography(text, cleaned):
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    "placeholder",
    [
        *("%s", "%d", "%5.1f", "%-10s", "%lu", "%(count)d", "%(user name)s", "%1$s", "%2", "{}", "{0}", "{name}"),
        *("{name!r:>10}", "{{ name }}", "${name}", "%{count}", "$name", "${{ name }}"),
    ],
)
def test_a_placeholder_is_one_word(placeholder):
    cleaned = clean(f"Open {placeholder}, please")
    assert cleaned == f"Open {SLOT} , please"
    for tokeniser in ("words", "plain"):
        assert tokenise(cleaned, "en", tokeniser) == ["open", SLOT, ",", "please"]


@pytest.mark.parametrize("text", ["100 % sure", "100% sure", "50 % d'espace", "5 $ each", "a 100 %"])
def test_a_percentage_or_price_is_no_placeholder(text):
    assert SLOT not in clean(text)


@pytest.mark.parametrize("tag", ["<b>", "</b>", "<br/>", '<a href="x.html" class="y">', "<!-- note -->", "&lt;b&gt;"])
def test_a_tag_is_one_word(tag):
    assert clean(f"Click{tag}here") == f"Click {TAG} here"
    assert tokenise(clean(f"Click{tag}here"), "en") == ["click", TAG, "here"]


def test_a_placeholder_within_a_tag_goes_with_it():
    assert clean('<a href="{url}">Help</a>') == f"{TAG} Help {TAG}"


def test_cleaning_again_changes_nothing():
    for text in ("&Save <b>%s</b> as “{name}” …", f"{SLOT} and {TAG}", "l’homme « seul »"):
        assert clean(clean(text)) == clean(text)


# ---- tokenisers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The red house.", "the red house ."),
        ("Wait, what?! No: never; go!", "wait , what ? ! no : never ; go !"),
        (
            "Don't, can't, it's, you're, we'll, I'm, they've, she'd",
            "do n't , ca n't , it 's , you 're , we 'll , i 'm , they 've , she 'd",
        ),
        ("the potters' wheels at ten o'clock", "the potters ' wheels at ten o'clock"),
        ("the king's- and the queen's", "the king 's - and the queen 's"),
        ("a read-only file (optional)", "a read-only file ( optional )"),
        ("10:30, 1,000 and 3.5 in 2020.", "10:30 , 1,000 and 3.5 in 2020 ."),
        ("the 2nd try...", "the 2nd try ..."),
        ('He said "yes" and/or "no"', 'he said " yes " and / or " no "'),
        ("", ""),
    ],
)
def test_english_words(text, words):
    assert tokenise(text, "en") == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L'homme d'ici n'a qu'un chat.", "l' homme d' ici n' a qu' un chat ."),
        ("Jusqu'à ce qu'il vienne, puisqu'elle l'attend", "jusqu' à ce qu' il vienne , puisqu' elle l' attend"),
        ("Aujourd'hui, le presqu'accident", "aujourd'hui , le presqu'accident"),
        ("Voulez-vous venir ?", "voulez -vous venir ?"),
        ("A-t-il mangé ? Y a-t-il du pain ?", "a -t-il mangé ? y a -t-il du pain ?"),
        ("Dis-le-moi, va-t-en, allez-y !", "dis -le -moi , va -t-en , allez -y !"),
        ("un arc-en-ciel, peut-être, celui-ci, là-bas", "un arc-en-ciel , peut-être , celui-ci , là-bas"),
        ("un rendez-vous", "un rendez-vous"),
        ("C'est-à-dire", "c' est-à-dire"),
        ("Est-ce qu'ils sont prêts ?", "est -ce qu' ils sont prêts ?"),
        ("'Avez-vous' et dis-le- ou l'y-t-il", "' avez -vous ' et dis -le - ou l' y -t-il"),
        ("1,5 million à 10:30", "1,5 million à 10:30"),
    ],
)
def test_french_words(text, words):
    assert tokenise(text, "fr") == words.split()


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_plain_tokeniser_splits_six_marks_off_and_nothing_else(language):
    words = tokenise("L'homme (là-bas) n'a\tpas 3.5, non: Oui; Ah?Oh!", language, "plain")
    assert " ".join(words) == "l'homme (là-bas) n'a pas 3 . 5 , non : oui ; ah ? oh !"


PIECES = [*"ab 1'-.,:;?!()\"%é_", "n't", "'s", "'re", "l'", "qu'", "jusqu'", "o'clock", "aujourd'hui", SLOT, TAG]
PIECES += ["-vous", "-t-il", "-le", "-moi", "-y", "-en", "rendez-vous"]


@given(
    st.lists(st.sampled_from(PIECES)).map("".join), st.sampled_from(["en", "fr"]), st.sampled_from(["words", "plain"])
)
@settings(derandomize=True, max_examples=1000)
def test_words_cut_again_stay_as_they_are(text, language, tokeniser):
    words = tokenise(text, language, tokeniser)
    assert tokenise(" ".join(words), language, tokeniser) == words
    assert "".join(words) == "".join(text.split())  # and nothing is lost


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "de"), "language must be one of 'en', 'fr', got 'de'"),
        (("x", "fr", "bpe"), "tokeniser must be one of 'words', 'plain', got 'bpe'"),
    ],
)
def test_an_unknown_language_or_tokeniser_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        tokenise(*arguments)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Save it. Then close it.", ["Save it.", "Then close it."]),
        ("Prêt ? Écrivez-nous ! Merci.", ["Prêt ?", "Écrivez-nous !", "Merci."]),
        ("See chap. two of vol. three.", ["See chap. two of vol. three."]),
        ("The U.S. Army", ["The U.S. Army"]),
        ("", []),
    ],
)
def test_a_paragraph_is_cut_to_sentences(text, parts):
    assert sentences(text) == parts


# ---- what is no translation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("The red house.", "La maison rouge."),
        ("Delete", "Supprimer"),
        (f"Delete the file {SLOT}?", f"Supprimer le fichier {SLOT} ?"),
        (f"Click {TAG} here {TAG} to go on to the next page", f"Cliquez {TAG} ici {TAG} pour aller à la page suivante"),
        ("The nation's information", "Les informations de la nation"),
        ("It costs 20 euros", "Cela coûte 20 euros"),
    ],
)
def test_translations_pass(source, target):
    assert is_translation(source, target)


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ("Error", "Error", "equal"),
        ("Configuration", "configuration", "equal but for case"),
        ("Unknown server response received", "Unknown server response received ici", "untranslated"),
        (f"Delete the file {SLOT}?", "Supprimer le fichier ?", "a placeholder less"),
        (f"{SLOT} of {SLOT}", f"{SLOT} sur {SLOT}", "hardly anything but placeholders"),
        (f"Move {SLOT} from {SLOT} to {SLOT} and then go", f"Mettre {SLOT} de {SLOT} à {SLOT} et puis aller", "three"),
        (f"Read {TAG} this one now", "Lisez ceci maintenant", "a tag less"),
        ("Set the use_ssl flag", "Activez l'option use_ssl", "a name of a program"),
        ("Open C:\\temp", "Ouvrir C:\\temp maintenant", "a path"),
        ("See https://example.org for more", "Voir https://example.org pour plus", "an address"),
        ("Open readme.txt first", "Ouvrez d'abord readme.txt", "a file name"),
        ("The file(s)", "Le(s) fichier(s)", "plurals left open"),
        ("Run with --verbose now", "Lancez avec --verbose maintenant", "an option"),
        ("3.14 - 2.71", "3,14 - 2,72", "no letters"),
        ("Yes", "Il faut dire que oui, évidemment et sans hésiter", "far too long"),
        ("", "", "empty"),
        ("Yes", "", "empty"),
    ],
)
def test_what_is_no_translation_does_not(source, target, why):
    assert not is_translation(source, target), why
