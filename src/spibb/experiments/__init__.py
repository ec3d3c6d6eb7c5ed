"""Studies: a frozen spec, a runner that resumes, one suite per study, and the aggregated rows."""
