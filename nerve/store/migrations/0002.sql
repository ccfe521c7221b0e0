-- Part 3: interactions, built-in tools, wakeups, files, search.  Part 4: agents.

-- Interactions that wait for an answer.  A row goes in the transaction that records interaction_resolved; what a
-- start finds here was lost with the process, and is visibly cancelled.
CREATE TABLE pending_interactions (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,                   -- of its frame in the log
    turn_id TEXT,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX pending_interactions_session ON pending_interactions (session_id);

-- At most one pending wakeup or deferred message a session; claiming is one statement (sessions-and-agents.md 11).
CREATE TABLE session_wakeups (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('wakeup', 'message')),
    prompt TEXT NOT NULL,
    reason TEXT,
    fire_at TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'fired', 'cancelled')),
    created_by_actor_id TEXT REFERENCES actors (id),
    caused_by_actor_id TEXT REFERENCES actors (id),
    created_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX session_wakeups_pending ON session_wakeups (session_id) WHERE status = 'pending';
CREATE INDEX session_wakeups_due ON session_wakeups (fire_at) WHERE status = 'pending';
