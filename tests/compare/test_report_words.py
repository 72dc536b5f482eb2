"""The words of a page: the first use of each links to its meaning, and the page lists those that it uses."""

import re

from compare.report import printers
from compare.report.blocks import WORDS, Bullets, Page, Section, Table, Terms, glossary, words_in


def page(*blocks):
    held = [Section("All", blocks)]
    listed = glossary(held)
    return Page("t", "s", (*held, listed) if listed else tuple(held))


def links(shown):
    return re.findall(r'<a class="word" href="#([^"]*)" title="[^"]*">([^<]*)</a>', shown)


def test_the_first_use_of_a_word_links_to_its_meaning():
    shown = printers.to_html(page("Two modes ran <fast>.", Bullets(("A mode again, and Tapes.",))))
    assert links(shown) == [("words-mode", "modes"), ("words-tape", "Tapes")]
    assert '<dt id="words-mode"><dfn>mode</dfn></dt>' in shown
    assert "ran &lt;fast&gt;." in shown


def test_only_words_that_a_sentence_uses_are_listed():
    (section,) = page("Padded sizes.", Table(("mode",), (("tape",),), "l")).sections[1:]
    assert section.blocks[0].blocks[0].rows == (("padding", WORDS["padding"]),)
    assert glossary([Section("x", ("nothing of the kind",))]) is None


def test_a_part_of_another_word_is_none():
    for text in ("static-bucket runs", "control flow", "rearmed", "stepwise", "break-evens-all"):
        assert [word for _, word in words_in(text) if word] == [], text
    assert "".join(piece for piece, _ in words_in("the control, a step")) == "the control, a step"


def test_code_and_names_of_files_are_no_words():
    shown = printers.to_html(page("Set `mode = <step>` (step.py:3, tape.c).", "A lone ` and a plan."))
    assert "Set <code>mode = &lt;step&gt;</code> (step.py:3, tape.c)." in shown
    assert links(shown) == [("words-plan", "plan")]
    assert "A lone ` and" in shown


def test_every_form_has_its_word():
    for form, word in {"shape policies": "shape policy", "Rungs": "rung", "traced": "trace", "ops": "op"}.items():
        assert [base for _, base in words_in(form) if base] == [word]


def test_terms_of_a_claim_are_linked_and_markdown_lists_meanings():
    made = page(Terms((("The claim", "A tape costs memory."),)))
    assert links(printers.to_html(made)) == [("words-tape", "tape")]
    assert f"**tape:** {WORDS['tape']}" in printers.to_markdown(made)
    assert "<dt>The claim</dt>" in printers.to_html(made)
