"""How sure may we be of a new policy? One verdict in three grades.

**certified**: every change passed a test on episodes not used to choose it (`certified`), which
holds in a log of any size and needs no model. **supported**: the percentile criterion holds at
level 1 − δ in the models that the log leaves possible, and nothing that the log shows without a
model contradicts them (`criteria`). **not supported**: keep the current policy.
"""

from spibb.grade import Grade as Grade
from spibb.verdict.criterion import Criterion as Criterion
from spibb.verdict.evidence import DrawnValue as DrawnValue
from spibb.verdict.evidence import Evidence as Evidence
from spibb.verdict.evidence import LoggedReturn as LoggedReturn
from spibb.verdict.evidence import gather as gather
from spibb.verdict.evidence import gather_for as gather_for
from spibb.verdict.remedies import WhyUnchanged as WhyUnchanged
from spibb.verdict.verdict import Verdict as Verdict
from spibb.verdict.verdict import decide as decide
from spibb.verdict.verdict import is_favourable as is_favourable
from spibb.verdict.verdict import judge as judge
from spibb.verdict.verdict import judge_by as judge_by
