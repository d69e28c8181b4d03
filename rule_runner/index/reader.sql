-- See rule_core/named_texts.py.
-- name: startable
WHERE state = ? AND (not_before <= ? OR not_before > ?) AND (started_at IS NULL) = ?
ORDER BY revision LIMIT ?

-- name: severities
SELECT DISTINCT counted_severity FROM rule_jobs
WHERE counted_severity IS NOT NULL AND mode = 'enforce';

-- name: acknowledged
SELECT DISTINCT trial FROM rule_jobs
WHERE acknowledged OR (outcome = 'IssuesFound' AND (counted_severity IS NULL OR root IS NULL));

-- name: incidents
SELECT counted_severity, count(*) FROM rule_jobs WHERE root = name GROUP BY counted_severity;

-- name: rule_work
SELECT
    rule,
    sum(judged),
    sum(CASE WHEN trials.state = 'running' THEN max(0, known - judged - skipped) ELSE 0 END),
    sum(rule_time)
FROM rule_jobs JOIN trials ON trials.id = rule_jobs.trial
GROUP BY rule;
