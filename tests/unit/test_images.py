"""The pictures of terminals in docs/images: one for each command drawn; nothing is fetched from elsewhere."""

import re
from pathlib import Path
from xml.etree import ElementTree

from docs.images import IMAGES, MAX_LINES, image_of
from tests.examples import cases

FOLDER = Path(__file__).parents[2] / "docs" / "images"


def test_there_is_a_picture_of_each_command_drawn_and_no_other():
    assert {path.stem for path in FOLDER.iterdir()} == set(IMAGES)


@cases("name", IMAGES)
def test_a_picture_is_svg_that_fetches_nothing(name: str):
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"https?://(?!www\.w3\.org/)", text) == []
    assert "Traceback" not in text and "cortex:&#160;" not in text


def test_the_same_text_is_drawn_the_same_and_a_long_one_is_cut():
    text = "\x1b[1mlevels\x1b[0m\n" * (MAX_LINES + 5)
    image = image_of("today", ["today"], text)
    assert image == image_of("today", ["today"], text)
    assert image.count("levels") == MAX_LINES - 1
