"""Labels and their codes meet here and nowhere else.

A label is a string, a whole number, or a tuple of these when a state spans several columns.
"""

from spibb.labels.coding import encode as encode
from spibb.labels.coding import factorize as factorize
from spibb.labels.coding import factorize_present as factorize_present
from spibb.labels.coding import label_parts as label_parts
from spibb.labels.kinds import EXACT_FLOATS as EXACT_FLOATS
from spibb.labels.kinds import LARGEST as LARGEST
from spibb.labels.kinds import LEAST as LEAST
from spibb.labels.kinds import Label as Label
from spibb.labels.kinds import check_exact as check_exact
from spibb.labels.kinds import same_kind as same_kind
from spibb.labels.kinds import sorted_places as sorted_places
from spibb.labels.vocabularies import Labels as Labels
from spibb.labels.vocabularies import Vocabulary as Vocabulary
from spibb.labels.vocabularies import column_names as column_names
from spibb.labels.vocabularies import translate as translate
from spibb.labels.vocabularies import vocabulary as vocabulary
