-- See rule_core/named_texts.py. Empty lines separate the statements that make tables.
-- name: tables
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    tensors INTEGER NOT NULL,
    profiler INTEGER NOT NULL,
    output TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL DEFAULT '',
    restarts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '',
    mark TEXT NOT NULL DEFAULT '',
    final INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    discovered_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    revision INTEGER NOT NULL DEFAULT 0,
    undelivered INTEGER NOT NULL DEFAULT 0,
    standing TEXT NOT NULL DEFAULT '',
    verdict TEXT AS (
        CASE WHEN outcome IN ('', 'IssuesFound') AND standing != '' THEN standing ELSE outcome END
    )
);

CREATE INDEX trials_by_state ON trials (state, changed_at);

CREATE INDEX trials_by_output ON trials (output);

CREATE INDEX trials_by_revision ON trials (revision);

CREATE TABLE changes (revision INTEGER NOT NULL, removals INTEGER NOT NULL);

INSERT INTO changes VALUES (0, random() & 0xffffffff); -- no two indexes count alike

CREATE TRIGGER trial_added AFTER INSERT ON trials BEGIN
    UPDATE changes SET revision = revision + 1;
    UPDATE trials SET revision = (SELECT revision FROM changes) WHERE id = NEW.id;
END;

CREATE TRIGGER trial_changed AFTER UPDATE ON trials WHEN NEW.revision = OLD.revision BEGIN
    UPDATE changes SET revision = revision + 1;
    UPDATE trials SET revision = (SELECT revision FROM changes) WHERE id = NEW.id;
END;

CREATE TRIGGER trial_removed AFTER DELETE ON trials BEGIN
    UPDATE changes SET revision = revision + 1, removals = removals + 1;
END;

CREATE TABLE rule_jobs (
    trial INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    rule TEXT NOT NULL,
    mode TEXT NOT NULL,
    outcome TEXT NOT NULL,
    severity TEXT,
    step INTEGER,
    judged INTEGER NOT NULL,
    findings INTEGER NOT NULL,
    known INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    last_step INTEGER,
    rule_time REAL NOT NULL,
    acknowledged INTEGER NOT NULL,
    counted_severity TEXT,
    since INTEGER,
    recovered_at INTEGER,
    root TEXT,
    sentence TEXT NOT NULL DEFAULT '',
    verdict TEXT AS (CASE WHEN recovered_at IS NULL THEN outcome ELSE 'Recovered' END),
    PRIMARY KEY (trial, name)
) WITHOUT ROWID;

CREATE INDEX rule_jobs_by_name ON rule_jobs (name, outcome);

-- name: upgrade
ALTER TABLE trials ADD COLUMN standing TEXT NOT NULL DEFAULT '';

ALTER TABLE trials ADD COLUMN verdict TEXT AS (
    CASE WHEN outcome IN ('', 'IssuesFound') AND standing != '' THEN standing ELSE outcome END
);

ALTER TABLE rule_jobs ADD COLUMN since INTEGER;

ALTER TABLE rule_jobs ADD COLUMN recovered_at INTEGER;

ALTER TABLE rule_jobs ADD COLUMN root TEXT; -- NULL: unknown until the results are read again

ALTER TABLE rule_jobs ADD COLUMN sentence TEXT NOT NULL DEFAULT '';

ALTER TABLE rule_jobs ADD COLUMN verdict TEXT AS (
    CASE WHEN recovered_at IS NULL THEN outcome ELSE 'Recovered' END
);

-- name: add
INSERT INTO trials (path, root, tensors, profiler, output, state, discovered_at, changed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (path) DO UPDATE
SET root = excluded.root, tensors = excluded.tensors, profiler = excluded.profiler
WHERE root = '';
