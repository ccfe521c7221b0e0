"""What is written once and kept: never more of it than a bound, never another object's."""

import orjson
import pytest
from attrs import frozen

from nerve.contract import codec


@frozen
class Row:
    number: int


@frozen
class Page:
    rows: list[Row]


@pytest.fixture(autouse=True, scope="module")
def _kept() -> None:
    codec.keep_written(Row)


def test_an_object_is_written_once_and_as_it_would_be_anyway() -> None:
    page = Page([Row(n) for n in range(3)])
    first = codec.encode(page)
    assert (
        first
        == codec.encode(page)
        == orjson.dumps(codec.unstructure(page))
        == b'{"rows":[{"number":0},{"number":1},{"number":2}]}'
    )
    assert codec.encode(page.rows[1]) == b'{"number":1}'
    assert codec._kept[id(page.rows[1])][0] is page.rows[1]
    assert codec.unstructure(page.rows[0]) == {"number": 0}


def test_many_objects_never_take_each_others_place() -> None:
    for n in range(3 * codec._KEPT):
        assert codec.encode(Row(n)) == b'{"number":%d}' % n  # the address of one that is gone is used again
    assert len(codec._kept) == codec._KEPT
