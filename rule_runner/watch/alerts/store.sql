-- See rule_core/named_texts.py. Empty lines separate the statements that make tables.
-- name: tables
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    is_digest INTEGER NOT NULL,
    made_at REAL NOT NULL
);

CREATE TABLE alerts (
    key TEXT PRIMARY KEY,
    content TEXT NOT NULL,
    found_at REAL NOT NULL,
    message INTEGER REFERENCES messages (id)
) WITHOUT ROWID;

CREATE TABLE deliveries (
    message INTEGER NOT NULL REFERENCES messages (id),
    service TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (message, service)
) WITHOUT ROWID;

-- name: due
SELECT message, service, content, attempts, made_at
FROM deliveries JOIN messages ON id = message
WHERE not_before <= ? OR not_before > ?
ORDER BY message, service;

-- name: postpone
UPDATE deliveries SET attempts = attempts + 1, not_before = ?
WHERE message = ? AND service = ?;
