"""Studies: a frozen spec, a runner that resumes, and the aggregated rows."""
