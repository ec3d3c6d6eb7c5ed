"""Labels of files with decimal commas: numbers get points, text stays as it is written.

Where a column holds nothing but numbers, 1,5 is the label 1.5, as a file with points has it. Where
it holds a word, or a number with a point, it is text: 1,5 and 1.5 are two labels. Columns that are
used as numbers (rewards, steps, bins) do not come here: there a point is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from spibb.irregular_tables import MISSING_LABEL
from spibb.sql.reading import NUMBER_TEXT, all_match

WITH_COMMA = NUMBER_TEXT.replace(r"\.", ",")
"""How numbers are written with a decimal comma."""


def with_points(columns: Sequence[Any]) -> list[Any]:
    """Columns of text with points for commas if they hold numbers only, together; else as given."""
    numbers = all(all_match(_distinct(column), WITH_COMMA) for column in columns)
    return [_pointed(column) for column in columns] if numbers else list(columns)


def cells_with_points(column: Any, labels: Iterable[Any]) -> Any:
    """Cells of new cases, with points in numbers if the known `labels` of the column are numbers.

    Whether the column held numbers only is known of the log alone: a case is read by itself.
    """
    import pyarrow as pa
    from pyarrow import compute

    known = pa.array([str(label) for label in labels if label != MISSING_LABEL], "string")
    if not all_match(known, NUMBER_TEXT):
        return column
    is_number = compute.match_substring_regex(column, f"^{WITH_COMMA}$")
    return compute.if_else(is_number, _pointed(column), column)


def _distinct(column: Any) -> Any:
    """The texts in a column, without the label of missing values."""
    from pyarrow import compute

    found = compute.unique(column).cast("string").drop_null()
    return found.filter(compute.not_equal(found, MISSING_LABEL))


def _pointed(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    if not pa.types.is_dictionary(column.type):
        return compute.replace_substring(column, ",", ".")
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    used = compute.unique(whole.indices).drop_null()  # 1.5 may be there unused, beside 1,5
    texts = compute.replace_substring(whole.dictionary.take(used), ",", ".")
    return pa.DictionaryArray.from_arrays(compute.index_in(whole.indices, used), texts)
