-- See rule_core/named_texts.py. Empty lines separate the statements that make tables.
-- name: tables
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    kind INTEGER NOT NULL,
    made_at REAL NOT NULL
);

CREATE TABLE alerts (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    told TEXT NOT NULL,
    waits INTEGER NOT NULL,
    found_at REAL NOT NULL
);

CREATE TABLE deliveries (
    message INTEGER NOT NULL REFERENCES messages (id),
    service TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (message, service)
) WITHOUT ROWID;

-- name: upgrade
ALTER TABLE messages RENAME COLUMN is_digest TO kind;

ALTER TABLE alerts RENAME TO earlier_alerts;

CREATE TABLE alerts (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    told TEXT NOT NULL,
    waits INTEGER NOT NULL,
    found_at REAL NOT NULL
);

INSERT INTO alerts (content, told, waits, found_at)
SELECT content, json_extract(content, '$.severity'), 0, found_at
FROM earlier_alerts WHERE message IS NOT NULL ORDER BY found_at, key;

DROP TABLE earlier_alerts;

-- name: due
SELECT message, service, content, attempts, made_at
FROM deliveries JOIN messages ON id = message
WHERE not_before <= ? OR not_before > ?
ORDER BY message, service;

-- name: told
UPDATE alerts SET told = CASE waits WHEN ? THEN ? ELSE told END, waits = 0
WHERE waits AND content = ?;

-- name: postpone
UPDATE deliveries SET attempts = attempts + 1, not_before = ?
WHERE message = ? AND service = ?;
