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
    source TEXT NOT NULL,                   -- of the turn
    prompt TEXT NOT NULL,
    reason TEXT,
    fire_at TEXT NOT NULL,
    due INTEGER NOT NULL DEFAULT 0 CHECK (due IN (0, 1)),  -- its time has come: it waits in the session's queue
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'fired', 'cancelled')),
    created_by_actor_id TEXT REFERENCES actors (id),
    caused_by_actor_id TEXT REFERENCES actors (id),
    created_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX session_wakeups_pending ON session_wakeups (session_id) WHERE status = 'pending';
CREATE INDEX session_wakeups_due ON session_wakeups (fire_at) WHERE status = 'pending';
CREATE INDEX session_wakeups_settled ON session_wakeups (session_id, created_at) WHERE status <> 'pending';

-- Every call of a built-in tool, whichever runtime made it.
CREATE TABLE mcp_tool_usage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    session_id TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    duration_ms INTEGER NOT NULL,
    success INTEGER NOT NULL CHECK (success IN (0, 1)),
    error TEXT,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX mcp_tool_usage_at ON mcp_tool_usage (at);
CREATE INDEX mcp_tool_usage_session ON mcp_tool_usage (session_id);

-- Agents: sub-agents and background tasks of a session (gaps.md 6.3).  Live rows at a start were lost with the process.
CREATE TABLE session_agents (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    backend TEXT NOT NULL,
    kind TEXT NOT NULL,
    ref TEXT NOT NULL,                      -- the runtime's own name of it
    task_id TEXT,
    task_type TEXT,
    spawn_tool_use_id TEXT,
    parent_agent_id TEXT,
    depth INTEGER NOT NULL CHECK (depth >= 1),
    name TEXT,
    description TEXT,
    agent_type TEXT,
    command TEXT,
    background INTEGER NOT NULL CHECK (background IN (0, 1)),
    ambient INTEGER NOT NULL CHECK (ambient IN (0, 1)),
    status TEXT NOT NULL CHECK (
        status IN ('starting', 'running', 'stopping', 'completed', 'failed', 'stopped', 'interrupted', 'lost')
    ),
    end_reason TEXT,
    error TEXT,
    attention TEXT,
    activity TEXT,
    summary TEXT,
    result_preview TEXT,
    requested_model TEXT,
    model TEXT,
    model_changed TEXT,                     -- JSON
    tokens INTEGER NOT NULL,
    tool_uses INTEGER NOT NULL,
    cost_usd REAL NOT NULL,
    runs INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    started_at TEXT,
    run_started_at TEXT,
    last_activity_at TEXT,
    ended_at TEXT,
    stop_requested_at TEXT,
    stopped_by_actor_id TEXT REFERENCES actors (id),
    stop_cause TEXT,                        -- the end_reason that a confirmed stop will have
    output_path TEXT,
    workflow TEXT,                          -- JSON
    rev INTEGER NOT NULL,
    prompt TEXT,
    result_text TEXT
) STRICT;

CREATE INDEX session_agents_session ON session_agents (session_id, n);
CREATE INDEX session_agents_live ON session_agents (session_id) WHERE status IN ('starting', 'running', 'stopping');
CREATE INDEX session_agents_ended ON session_agents (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE session_agent_items (
    agent_id TEXT NOT NULL REFERENCES session_agents (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    item TEXT NOT NULL,                     -- JSON, as every reader gets it
    PRIMARY KEY (agent_id, seq)
) STRICT, WITHOUT ROWID;

-- The words of every message, for the search over sessions (nerve/store/search.py).  The index keeps no text of its
-- own; it is held right by the triggers, which are the only writers beside the removal of what waits below.
-- Words beyond the first 65,536 characters of a message are not indexed.
CREATE VIRTUAL TABLE message_words USING fts5 (
    content, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);

-- What is removed is overwritten at once, as secure_delete does for tables.
INSERT INTO message_words (message_words, rank) VALUES ('secure-delete', 1);

-- Messages that are gone, until their words are: to take those out costs about a millisecond a message, so a long
-- session's leave in steps.
CREATE TABLE forgotten_messages (
    id INTEGER PRIMARY KEY,
    content TEXT NOT NULL
) STRICT;

CREATE TRIGGER message_words_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_words (rowid, content) VALUES (new.id, substr(new.content, 1, 65536));
END;

CREATE TRIGGER message_words_changed AFTER UPDATE OF content ON messages BEGIN
    INSERT INTO message_words (message_words, rowid, content)
    VALUES ('delete', old.id, substr(old.content, 1, 65536));
    INSERT INTO message_words (rowid, content) VALUES (new.id, substr(new.content, 1, 65536));
END;

CREATE TRIGGER message_words_forgotten AFTER DELETE ON messages BEGIN
    INSERT INTO forgotten_messages (id, content) VALUES (old.id, substr(old.content, 1, 65536));
END;

INSERT INTO message_words (rowid, content) SELECT id, substr(content, 1, 65536) FROM messages;

-- Files that people have sent, for messages to carry.  They lie below ``directory`` as ``path``.
CREATE TABLE uploads (
    id TEXT PRIMARY KEY,
    session_id TEXT REFERENCES sessions (id) ON DELETE CASCADE,  -- NULL until a message of a session carries it
    actor_id TEXT REFERENCES actors (id),
    filename TEXT NOT NULL,
    media_type TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('image', 'file')),
    size INTEGER NOT NULL,
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    used_at TEXT,                           -- when a turn began whose message carries it
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX uploads_session ON uploads (session_id);
CREATE INDEX uploads_unused ON uploads (actor_id, created_at) WHERE used_at IS NULL;

-- Which files a message carries, from the moment it is accepted; ``queue_id`` names its queue entry or its wakeup.
CREATE TABLE message_uploads (
    queue_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    upload_id TEXT NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    PRIMARY KEY (queue_id, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX message_uploads_upload ON message_uploads (upload_id);

-- Messages with files: few, and looked through when a session goes whose files a fork still shows.
CREATE INDEX messages_with_files ON messages (session_id) WHERE role = 'user' AND blocks IS NOT NULL;

-- Who still needs a conversation of a runtime: the session that owns it, and forks of that which have not run yet
-- (fork_pending: sdk_session_id is then the conversation to branch, fork_turn where; nerve/store/forks.py).
CREATE INDEX sessions_native ON sessions (sdk_session_id) WHERE sdk_session_id IS NOT NULL;
