"""Off-policy evaluation: what a policy would earn, from a log that another policy made.

Notation: episode i visits x_0, a_0, r_0, x_1, …, a_{T−1}, r_{T−1}; the behaviour policy μ made it,
π is to be evaluated, and w_t = Π_{u≤t} π(a_u|x_u)/μ(a_u|x_u) is its importance weight. Sources:
Precup, Sutton & Singh 2000; Jiang & Li 2016; Thomas, Theocharous & Ghavamzadeh 2015 (HCOPE, HCPI);
Thomas & Brunskill 2016. Six estimators of ρ(π) = E_π[Σ_t γ^t r_t]:

    is      X_i = w_{T−1} Σ_t γ^t r_t
    pdis    X_i = Σ_t γ^t w_t r_t
    dr      X_i = V̂(x_0) + Σ_t γ^t w_t (r_t + γ V̂(x_{t+1}) − Q̂(x_t, a_t))
    wis     Σ_i w_i G_i / Σ_i w_i,  G_i = Σ_t γ^t r_t
    wpdis   Σ_t γ^t Σ_i w_t^i r_t^i / Σ_i w_t^i
    wdr     mean V̂(x_0) + Σ_t γ^t Σ_i w_t^i (r_t^i + γ V̂(x_{t+1}^i) − Q̂(x_t^i, a_t^i)) / Σ_i w_t^i

The first three are unbiased means of the X_i (dr for any model that was not fitted to the same
episodes); the weighted three are consistent, biased, and of lower variance. An episode that ended
before step t keeps its last weight in the normaliser Σ_i w_t^i. Q̂ and V̂ are the values of π in a
model.

**Truncated episodes.** By default ("recorded") nothing is earned beyond the cut: the estimate is
of the return of the recorded part, and what is lost is γ^T V(x_T) per cut episode. With "model",
γ V̂(x_T) is added to the last reward of a cut episode, in all six; this trusts the model there, and
an episode whose last successor is not recorded stays as it is.

**Missing mass.** Weights have mean 1 in truth; in a log that lacks what π would do their mean is
lower, and the rest counts as a return of 0: safe where 0 is the worst return, and the contrary
where returns are negative. Limited contributions make it count as `lowest_return` L: as if all
rewards were (1 − γ)L higher, is adds L(1 − w_{T−1}) and pdis adds
L(1 − (1 − γ)Σ_t γ^t w_t − γ^T w_{T−1}), both of mean 0. They cannot be below L, which exact bounds
need (pdis takes 0 for a positive L: its last term would have no limit); but a limit far from the
returns multiplies the chance in the weights. So estimates, Student's t and BCa do without them,
except in HCPI, which must not trust what the log lacks. dr fills the gap with the model's values,
and the model that is estimated here gives L to pairs it never saw.
"""

from __future__ import annotations

from spibb.ope.bounds import BOUNDS, EXACT, BoundedEstimate, LowerBound, lower_bound
from spibb.ope.contributions import (
    ESTIMATORS,
    TRUNCATED,
    Contributions,
    contributions,
    no_limits,
)
from spibb.ope.estimate import (
    FEW_EPISODES,
    Estimate,
    beyond_reach,
    effective_sample_size,
    is_beyond_reach,
    reach_of,
)
from spibb.ope.report import OffPolicyReport, off_policy_estimates, report_of
from spibb.ope.sweep import LIMITED, Candidates, ValuedCandidates

__all__ = [
    "BOUNDS",
    "ESTIMATORS",
    "EXACT",
    "FEW_EPISODES",
    "LIMITED",
    "TRUNCATED",
    "BoundedEstimate",
    "Candidates",
    "Contributions",
    "Estimate",
    "LowerBound",
    "OffPolicyReport",
    "ValuedCandidates",
    "beyond_reach",
    "contributions",
    "effective_sample_size",
    "is_beyond_reach",
    "lower_bound",
    "no_limits",
    "off_policy_estimates",
    "reach_of",
    "report_of",
]  # fmt: skip
