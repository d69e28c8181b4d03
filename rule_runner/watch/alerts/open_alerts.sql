-- See rule_core/named_texts.py.
-- name: open
SELECT trials.id, path, output, name, rule_jobs.outcome,
    coalesce(counted_severity, 'error'), step, ''
FROM rule_jobs JOIN trials ON trials.id = trial
WHERE mode = 'enforce' AND NOT acknowledged
    AND (counted_severity IS NOT NULL OR rule_jobs.outcome = 'Error')
UNION ALL
SELECT id, path, output, '', outcome, 'error', NULL, problem
FROM trials WHERE state = 'judged' AND outcome = 'Error' AND problem != '';
