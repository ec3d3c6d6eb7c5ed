"""From a policy to decisions elsewhere: files of cases, SQL, rules, trees, a running service."""
