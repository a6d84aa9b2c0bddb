"""Texts that do not look English, given to English vectors, are told; English ones never are."""

import pickle
import warnings

import numpy as np
import pytest

from sklearn_mcsg import EmbeddingVectorizer, cluster_texts, make_text_embedding
from sklearn_mcsg.cli import main
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text import TokenisedTexts, note_on_language
from sklearn_mcsg.text._english import share_of_foreign_words
from sklearn_mcsg.text._tokenised import Tokens, into_words
from sklearn_mcsg.text.sources import open_table

OTHERS = {
    "German": ["Der Hund schläft im Garten.", "Die Katze liegt auf dem Sofa."],
    "French": ["Le chat dort sur le canapé.", "Les actions ont fortement baissé lundi."],
    "Spanish": ["El gato duerme en el sofá.", "Las acciones cayeron el lunes por la mañana."],
    "Italian": ["Il gatto dorme sul divano.", "Le azioni sono scese lunedì mattina alla borsa."],
    "Portuguese": ["O gato dorme no sofá da sala.", "As ações caíram na segunda-feira em Lisboa."],
    "Dutch": ["De kat slaapt op de bank.", "De aandelen daalden maandag op de beurs."],
    "Swedish": ["Katten sover på soffan i köket.", "Aktierna föll kraftigt på måndagen."],
    "Polish": ["Kot śpi na kanapie w salonie.", "Akcje gwałtownie spadły w poniedziałek."],
    "Czech": ["Kočka spí na pohovce v kuchyni.", "Akcie v pondělí prudce klesly."],
    "Turkish": ["Kedi kanepede uyuyor.", "Hisseler pazartesi günü sert düştü."],
    "Finnish": ["Kissa nukkuu sohvalla keittiössä.", "Osakkeet laskivat jyrkästi maanantaina."],
    "Hungarian": ["A macska a kanapén alszik.", "A részvények hétfőn meredeken estek."],
    "Vietnamese": ["Con mèo đang ngủ trên ghế sofa.", "Cổ phiếu giảm mạnh vào thứ Hai."],
    "Russian": ["Кошка спит на диване.", "Акции резко упали в понедельник."],
    "Greek": ["Η γάτα κοιμάται στον καναπέ.", "Οι μετοχές έπεσαν απότομα τη Δευτέρα."],  # noqa: RUF001
    "Arabic": ["القطة تنام على الأريكة", "انخفضت الأسهم بشكل حاد يوم الاثنين"],
    "Hebrew": ["החתול ישן על הספה", "המניות ירדו בחדות ביום שני"],
    "Hindi": ["बिल्ली सोफे पर सो रही है", "सोमवार को शेयर तेजी से गिरे"],
    "Korean": ["고양이가 소파에서 잔다", "월요일에 주가가 급락했다"],
    "Chinese": ["猫在沙发上睡觉。", "星期一股价大幅下跌。"],
    "Japanese": ["猫はソファーで寝ている。", "月曜日に株価が急落した。"],
    "Thai": ["แมวนอนบนโซฟา", "หุ้นตกหนักในวันจันทร์"],
}
ENGLISH = [
    ["A cat sat on the mat.", "A kitten lay on the rug."],
    ["late again", "no delay"],
    ["Zortanol", "Ambromycin"],
    ["The Zortanol dose is safe.", "The Ambromycin dose is safe."],
    ["fix segfault in ext4_mb_init", "systemd-journald crashes on btrfs", "bump libfoo-dev to 1.2.3-4ubuntu1"],
    ["Real Madrid beat Osasuna", "Oscar de la Hoya wins in Las Vegas", "Crème brûlée at the café"],
    ["stocks fell monday", "oil price record", "microsoft windows security update"],
    ["\u03b1-helix and β-sheet of the protein", "the angle θ of a Σ-algebra"],
    ["", "?!", "3.14"],
    ["def main(argv): return os.path.join(root, name)", "#include <stdio.h>"],
    ["Angela Merkel met Emmanuel Macron in Aachen.", "Lewandowski scored for Bayern München."],
]


def share(texts, vectors="glove-6b-50d"):
    table = open_table(vectors).in_order
    return share_of_foreign_words(Tokens.of(texts, into_words(None, False)), table.has if table else lambda word: True)


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_are_noticed(language):
    assert share(OTHERS[language]) > 0.3
    assert share(OTHERS[language] * 50) == share(OTHERS[language])


@pytest.mark.parametrize("language", ["Russian", "Greek", "Arabic", "Chinese", "Japanese", "Thai", "Korean"])
def test_other_scripts_are_noticed_without_a_table_of_words(language):
    assert share(OTHERS[language], "wordllama") > 0.3


@pytest.mark.parametrize("texts", ENGLISH)
def test_english_is_not_noticed(texts):
    assert share(texts) == share(texts, "wordllama") == 0
    assert not any(share([text]) for text in texts)


def test_no_short_text_is_noticed():
    texts = load_short_texts().data
    assert not any(share([text]) for text in texts)
    assert share(texts) == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["qa"] * 5 + ["cat"] * 11, 5 / 16),  # five foreign words are enough
        (["qa"] * 4 + ["cat"] * 5, 0),
        (["qa"] * 6 + ["cat"] * 14, 0),  # not more than 30 %
        (["qa"] * 6 + ["cat"] * 9 + ["the"], 6 / 16),
        (["qa"] * 6 + ["cat"] * 7 + ["the"] * 2, 0),  # more than 10 % are English function words
        (["qa"] * 6 + ["cat"] * 7 + ["in"] * 2, 6 / 15),  # other languages have this one too
        (["nicht"] * 3 + ["qa"] * 2, 1),  # common in another language
        (["nicht"] * 3 + ["qa"], 0),
        (["кот"] * 2, 1),  # of another script, two are enough
        (["кот", "nicht"], 0),
        (["qa-cat"] * 6, 1),
        (["cat-cat", "well-known"] * 6, 0),
        (["qa"] * 6 + ["3.5", "...", "%"] * 50, 1),  # what has no letter is not counted
        ([], 0),
    ],
)
def test_the_rule(words, expected):
    known = {"cat", "the", "in", "well", "known", "nicht"}
    order = np.random.default_rng(0).permutation(len(words))
    texts = [" ".join(words[i] for i in order)]
    found = share_of_foreign_words(Tokens.of(texts, into_words(str.split, False)), known.__contains__)
    assert found == pytest.approx(expected)


SENTENCE = "do not look English .* Pass vectors of their language: vectors= in Python, --vectors on the command line"


@pytest.mark.parametrize("wrapped", [list, TokenisedTexts.of])
def test_fit_warns_once_and_transform_does_not(wrapped):
    texts = wrapped(OTHERS["German"])
    vectorizer = EmbeddingVectorizer()
    for fit in (vectorizer.fit, vectorizer.fit_transform, make_text_embedding().fit):
        with pytest.warns(UserWarning, match=SENTENCE) as caught:
            fit(texts)
        assert len(caught) == 1
    assert caught[0].filename.endswith("pipeline.py")
    vectorizer.transform(texts)
    pickle.loads(pickle.dumps(vectorizer)).transform(texts)
    assert "55% of the words are unknown or of other languages" in note_on_language(vectorizer, texts)
    assert not note_on_language(vectorizer, ["A cat sat on the mat."])


def test_own_vectors_may_be_of_any_language():
    rng = np.random.default_rng(0)
    own = {word: rng.normal(size=4) for text in OTHERS["German"] for word in text.lower().rstrip(".").split()}
    for vectors in (own, [own, "spelling"], [own, "glove-6b-50d"], [own, "wordllama"]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vectorizer = EmbeddingVectorizer(vectors, weighting="norm").fit(OTHERS["German"])
        assert not note_on_language(vectorizer, OTHERS["German"])


def test_the_functions_for_texts_warn_once():
    texts = OTHERS["German"] + OTHERS["Dutch"] + OTHERS["French"]
    with pytest.warns(UserWarning, match=SENTENCE) as caught:
        cluster_texts(texts, 2)
    assert len(caught) == 1


def test_compare_notices_other_languages(capsys, tmp_path):
    assert main(["compare", *OTHERS["German"]]) == 0
    assert "These texts do not look English (55% of the words" in capsys.readouterr().err
    assert main(["compare", *OTHERS["German"], "--quiet"]) == 0
    assert not capsys.readouterr().err
    for texts in ENGLISH[:6]:
        assert main(["compare", *texts[:2]]) == 0
        assert "English" not in capsys.readouterr().err
    own = tmp_path / "german.txt"
    own.write_text("der 1 2\ndie 2 1\nhund 3 4\nkatze 4 3\n", encoding="utf8")
    assert main(["compare", *OTHERS["German"], "--vectors", str(own)]) == 0
    assert "English" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["cluster -n 2", "search Katze", "dedupe --threshold 0.5", "segment -n 2"])
def test_commands_notice_other_languages_once(command, capsys, tmp_path):
    path = tmp_path / "german.txt"
    path.write_text("\n".join(OTHERS["German"] * 3), encoding="utf8")
    name, *options = command.split()
    assert main([name, str(path), *options]) == 0
    assert capsys.readouterr().err.count("do not look English") == 1
    path.write_text("\n".join(OTHERS["Chinese"] * 3), encoding="utf8")
    assert main([name, str(path), *options]) == 0
    written = capsys.readouterr().err
    assert written.count("do not look English") == 1
    assert written.count("put no spaces between words") == 1
    path.write_text("\n".join(load_short_texts().data[:20]), encoding="utf8")
    assert main([name, str(path), *options]) == 0
    assert "English" not in capsys.readouterr().err
