"""SVG made smaller: the picture is the same, and a text never becomes a part of it."""

import re

import pytest

from compare.report.figures.style import compact, with_classes


def svg(body, text="x"):
    return f'<svg width="100pt">\n <g id="a">\n  {body}\n </g>\n <text x="1.234567" y="2">{text}</text>\n</svg>'


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("M 303.92 773.60 \nL 317.11 758.18 \n", "M303.9 773.6L317.1 758.2"),
        ("M 0 1.87 \nC 0.504 1.87 0.97 1.67 1.32 1.32 \nz\n", "M0 1.87C0.5 1.87 0.97 1.67 1.32 1.32z"),
        ("M 1 1 \nL 2.01 1 \nL 2.02 1.0 \nL 2.03 1 \nL 9 1", "M1 1L2 1L9 1"),
        ("M -0.04 0.3 L 10000.04 7", "M-0 0.3L10000 7"),
    ],
)
def test_a_path_keeps_its_points_to_a_tenth_and_its_curves_to_a_hundredth(path, short):
    assert f' d="{short}"' in compact(svg(f'<path d="{path}"/>'))


def test_names_stay_where_something_refers_to_them():
    small = compact(svg('<path id="used"/><path id="free"/><use xlink:href="#used"/><g clip-path="url(#c)" id="c"/>'))
    assert re.findall(r'id="(\w+)"', small) == ["used", "c"]
    assert "\n" not in small
    assert 'x="1.2"' in small


def test_styles_that_come_again_are_classes_and_others_stay():
    small = with_classes(svg('<a style="fill: red"/><b style="fill: red"/><c style="fill: blue"/>'), "p")
    assert "<style>.p0{fill: red}</style>" in small
    assert small.count('class="p0"') == 2
    assert small.count('style="fill: blue"') == 1


def test_what_stands_in_a_text_is_left_alone():
    text = ' style="}body{display:none" d="1.23456" id="free" x="1.23456"' * 2
    for made in (compact(svg("<g/>", text)), with_classes(svg("<g/>", text), "p")):
        assert text in made
        assert "<style>.p" not in made
