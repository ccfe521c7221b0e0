-- Part 1: identity, sessions, turns, the turn queue, the numbered event log.
-- Instants are TEXT, UTC, ISO 8601 with milliseconds and Z, so that they sort as text.  Booleans are INTEGER 0/1.

-- One row for facts of the instance: home_id, setup_token (until claimed), claimed_at.
CREATE TABLE instance (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Every start of the daemon; ended_at NULL means that it was not shut down cleanly (loop breaker, decisions D8).
CREATE TABLE daemon_starts (
    id INTEGER PRIMARY KEY,
    generation TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;

-- Identity (gaps.md 1.2).  rowid order is the order of creation.
CREATE TABLE actors (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('human', 'system')),
    display_name TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE accounts (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    actor_id TEXT NOT NULL UNIQUE REFERENCES actors (id),
    username TEXT UNIQUE COLLATE NOCASE,
    enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    password_hash TEXT,
    -- 'row': the hash above counts; 'config': auth.password_hash of the configuration counts until the API sets one
    credential_origin TEXT NOT NULL DEFAULT 'row' CHECK (credential_origin IN ('row', 'config')),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- External mode (gaps.md 2.3): who the gateway calls by which subject.
CREATE TABLE actor_identities (
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    actor_id TEXT NOT NULL REFERENCES actors (id),
    PRIMARY KEY (provider, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('created', 'active', 'idle', 'stopped', 'error', 'archived')),
    metadata TEXT NOT NULL DEFAULT '{}',
    backend TEXT NOT NULL,
    backend_reason TEXT,                    -- why the session is on the fallback script; NULL on a configured runtime
    model TEXT,
    cwd TEXT NOT NULL,
    sdk_session_id TEXT,                    -- the runtime's own id of the conversation
    parent_session_id TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    forked_from_message INTEGER,
    fork_pending INTEGER NOT NULL DEFAULT 0 CHECK (fork_pending IN (0, 1)),
    fork_turn TEXT,
    starred INTEGER NOT NULL DEFAULT 0 CHECK (starred IN (0, 1)),
    created_by_actor_id TEXT REFERENCES actors (id),
    caused_by_actor_id TEXT REFERENCES actors (id),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_activity_at TEXT,
    connected_at TEXT,
    archived_at TEXT,
    last_memorized_at TEXT,
    message_count INTEGER NOT NULL DEFAULT 0,
    total_cost_usd REAL NOT NULL DEFAULT 0,
    last_usage TEXT,                        -- JSON of the newest turn's usage, for the context bar
    quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1)),
    -- Numbers of the event log: every number up to seq_reserved may have been shown to somebody.
    seq_reserved INTEGER NOT NULL DEFAULT 0,
    -- Sorts the three feeds apart without looking at the row: 'chat' or 'system' (cron, hook).
    feed TEXT NOT NULL GENERATED ALWAYS AS (CASE WHEN source IN ('cron', 'hook') THEN 'system' ELSE 'chat' END) STORED
) STRICT;

CREATE INDEX sessions_feed ON sessions (feed, updated_at DESC, n DESC) WHERE status <> 'archived' AND starred = 0;
CREATE INDEX sessions_system ON sessions (feed, updated_at DESC, n DESC) WHERE status <> 'archived';
CREATE INDEX sessions_archived ON sessions (feed, archived_at DESC, n DESC) WHERE status = 'archived';
CREATE INDEX sessions_starred ON sessions (updated_at DESC, n DESC) WHERE starred = 1 AND status <> 'archived';
CREATE INDEX sessions_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;

-- Turns that were begun.  state 'running' without a process is what recovery looks for.
CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'stopped', 'failed', 'interrupted')),
    source TEXT NOT NULL,
    queue_id TEXT,
    actor_id TEXT,
    client_msg_id TEXT,
    user_message_id INTEGER,
    assistant_message_id INTEGER,
    native_turn_id TEXT,
    first_seq INTEGER NOT NULL,             -- the first logged frame of the turn
    error TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT
) STRICT;

CREATE INDEX turns_running ON turns (session_id) WHERE state = 'running';
CREATE INDEX turns_session ON turns (session_id, started_at);

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
    content TEXT NOT NULL,
    thinking TEXT,
    blocks TEXT,                            -- JSON list or NULL
    created_at TEXT NOT NULL,
    channel TEXT,
    external_id TEXT,
    native_turn_id TEXT,
    turn_id TEXT,
    actor_id TEXT REFERENCES actors (id)
) STRICT;

CREATE INDEX messages_session ON messages (session_id, id);
CREATE UNIQUE INDEX messages_external ON messages (session_id, external_id) WHERE external_id IS NOT NULL;

-- The durable turn queue (gaps.md 6).  n is the order; internal triggers are not stored here.
CREATE TABLE queue_entries (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    content TEXT NOT NULL,
    source TEXT NOT NULL,
    actor_id TEXT REFERENCES actors (id),
    client_msg_id TEXT,
    model TEXT,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX queue_session ON queue_entries (session_id, n);

-- client_msg_id values that were accepted in the last ten minutes; a cancelled or refused one is forgotten.
CREATE TABLE seen_client_messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    client_msg_id TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    PRIMARY KEY (session_id, client_msg_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX seen_client_messages_at ON seen_client_messages (seen_at);

-- The numbered event log (decisions D6, D7, D55).  frame is the JSON as every reader sees it, seq included.
CREATE TABLE frames (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    turn_id TEXT,
    at TEXT NOT NULL,
    frame TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    event_type TEXT NOT NULL,
    details TEXT NOT NULL DEFAULT '{}',
    actor_id TEXT REFERENCES actors (id),
    caused_by_actor_id TEXT REFERENCES actors (id),
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX session_events_session ON session_events (session_id, id DESC);

-- The only trace of a deleted session; kept 90 days.
CREATE TABLE session_deletions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    created_by_actor_id TEXT,
    actor_id TEXT,
    caused_by_actor_id TEXT,
    deleted_at TEXT NOT NULL
) STRICT;

CREATE TABLE session_usage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn_id TEXT,
    model TEXT,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_input_tokens INTEGER NOT NULL DEFAULT 0,
    cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
    max_context_tokens INTEGER,
    num_turns INTEGER,
    cost_usd REAL NOT NULL DEFAULT 0,
    duration_ms INTEGER,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX session_usage_session ON session_usage (session_id, id);

-- What a file held before the first change by a session; content NULL with existed 0: there was no file,
-- with existed 1: it could not be kept (too big or unreadable).
CREATE TABLE session_file_snapshots (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    existed INTEGER NOT NULL CHECK (existed IN (0, 1)),
    content BLOB,
    created_at TEXT NOT NULL,
    PRIMARY KEY (session_id, path)
) STRICT;

-- Which session a channel last talked to (api:default).
CREATE TABLE channel_sessions (
    channel_key TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
