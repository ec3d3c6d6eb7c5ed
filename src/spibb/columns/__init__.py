"""From a caller's columns to the rows of a log: names, values, rows."""

from spibb.columns.names import ALIASES as ALIASES
from spibb.columns.names import OPTIONAL as OPTIONAL
from spibb.columns.names import REQUIRED as REQUIRED
from spibb.columns.names import UNIT as UNIT
from spibb.columns.names import check_given as check_given
from spibb.columns.names import check_unit as check_unit
from spibb.columns.names import ignored as ignored
from spibb.columns.names import resolve as resolve
from spibb.columns.rows import EMPTY as EMPTY
from spibb.columns.rows import NO_STATE as NO_STATE
from spibb.columns.rows import Columns as Columns
from spibb.columns.rows import assemble as assemble
from spibb.columns.rows import code_states as code_states
from spibb.columns.rows import recode_successors as recode_successors
from spibb.columns.values import FLAGS as FLAGS
from spibb.columns.values import flag_column as flag_column
from spibb.columns.values import float_column as float_column
from spibb.columns.values import labels_column as labels_column
from spibb.columns.values import step_column as step_column
from spibb.columns.values import to_arrow_table as to_arrow_table
