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
    undelivered INTEGER NOT NULL DEFAULT 0
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
    PRIMARY KEY (trial, name)
) WITHOUT ROWID;

CREATE INDEX rule_jobs_by_name ON rule_jobs (name, outcome);

INSERT INTO trials (path, root, tensors, profiler, output, state, outcome, discovered_at, changed_at)
VALUES ('/runs/a', '/runs', 1, 0, '/out/a', 'judged', 'IssuesFound', 1.0, 2.0);

INSERT INTO rule_jobs VALUES
    (1, 'LossSpike', 'LossSpike', 'enforce', 'IssuesFound', 'error', 20, 9, 1, 9, 0, 90, 0.5, 0, 'error'),
    (1, 'Overfit', 'Overfit', 'enforce', 'NoIssuesFound', NULL, NULL, 9, 0, 9, 0, 90, 0.5, 0, NULL);

PRAGMA user_version = 3;
PRAGMA application_id = 1920104296;
