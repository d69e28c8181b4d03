-- See rule_core/named_texts.py.
-- name: open
SELECT trials.id AS trial, path, output, name AS rule, rule_jobs.outcome,
    coalesce(counted_severity, 'error') AS severity, coalesce(since, step) AS step,
    coalesce(nullif(rule_jobs.root, ''), name) AS cause
FROM rule_jobs JOIN trials ON trials.id = trial
WHERE mode = 'enforce' AND NOT acknowledged
    AND (counted_severity IS NOT NULL OR rule_jobs.outcome = 'Error')
ORDER BY trials.id, rule_jobs.outcome, cause, name != cause, since, name;

-- name: failed
SELECT id AS trial, path, output, '' AS rule, outcome, 'error' AS severity, problem
FROM trials WHERE state = 'judged' AND outcome = 'Error' AND problem != '';

-- name: recovered
SELECT path, name, recovered_at FROM rule_jobs JOIN trials ON trials.id = trial
WHERE mode = 'enforce' AND rule_jobs.outcome IN ('IssuesFound', 'InProgress')
    AND trial IN (SELECT trial FROM rule_jobs WHERE recovered_at IS NOT NULL);
