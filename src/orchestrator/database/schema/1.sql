-- Orchestrators that want to work on this data directory; at most one of them is active.
CREATE TABLE runner (
    epoch INTEGER PRIMARY KEY AUTOINCREMENT,
    -- A later runner has a higher rank: its row in the lock file, and the same in all epochs of a process.
    rank INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'active', 'ended')),
    unit TEXT NOT NULL,
    pid INTEGER NOT NULL,
    machine TEXT NOT NULL,
    boot TEXT NOT NULL,
    namespace TEXT NOT NULL,
    components TEXT NOT NULL,
    restarts INTEGER NOT NULL,
    since INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX runner_active ON runner (state) WHERE state = 'active';

CREATE TABLE crawl (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    status TEXT NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'started', 'paused', 'sealed', 'cancelled')),
    reason TEXT,
    url TEXT NOT NULL,
    max_depth INTEGER NOT NULL,
    -- JSON: an array of names, and an object of settings.
    plugins TEXT NOT NULL,
    config TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    changed_at INTEGER,
    retry_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- What its worker does: the hooks that set up the crawl, its snapshots, or, once all of them are final, its
    -- last hooks.
    phase TEXT NOT NULL DEFAULT 'setup' CHECK (phase IN ('setup', 'snapshots', 'end')),
    -- 1 if the crawl skips pages that the archive has.
    only_new INTEGER NOT NULL DEFAULT 0 CHECK (only_new IN (0, 1)),
    -- 1 if it is kept from deletion, with all its pages.
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    -- Host of the snapshot that was started last; 0 if none was.
    last_host INTEGER NOT NULL DEFAULT 0,
    -- N of the user archivist-hook-N; 0 is archivist-hook.
    hook_user INTEGER NOT NULL DEFAULT 0,
    -- JSON array of the ids of the users whose settings the crawl has.
    users TEXT NOT NULL,
    -- Persona of the latest attempt: '' if it had none, NULL before the first attempt.
    persona TEXT,
    token TEXT,
    directory TEXT,
    -- Random identity of the directory, drawn before the first start.
    identity TEXT,
    -- SHA-256 of list, options and user, if a command in the foreground added the crawl: the same command joins
    -- it instead of adding another one. NULL once its settings were changed, its pages cancelled, or it has ended.
    foreground BLOB,
    -- Of a fleet: open while this node waits for more pages, then closing. NULL: of this machine alone, and so is
    -- a crawl of a fleet that the node has left; that fleet may give it pages again.
    fleet TEXT CHECK (fleet IN ('open', 'closing', 'left')),
    -- When the fleet gave it a page last, or a page of it ended.
    paged_at INTEGER,
    -- What all nodes have used of its limits: bytes of output files, and when the fleet got it.
    fleet_bytes INTEGER NOT NULL DEFAULT 0,
    fleet_began INTEGER
) STRICT;
CREATE INDEX crawl_of_fleet ON crawl (paged_at) WHERE fleet = 'open';
CREATE INDEX crawl_due ON crawl (retry_at, id) WHERE status = 'queued';
CREATE INDEX crawl_started ON crawl (id) WHERE status = 'started';
CREATE INDEX crawl_hook_user ON crawl (hook_user)
    WHERE hook_user > 0 AND status IN ('queued', 'started', 'paused');
-- lists of crawls, newest first: nodes of a fleet reserve ids in blocks
CREATE INDEX crawl_created ON crawl (created_at, id);
CREATE INDEX crawl_foreground ON crawl (foreground) WHERE foreground IS NOT NULL;
CREATE TRIGGER crawl_left AFTER UPDATE OF status ON crawl
WHEN NEW.foreground IS NOT NULL AND NEW.status IN ('sealed', 'cancelled') BEGIN
    UPDATE crawl SET foreground = NULL WHERE id = NEW.id;
END;

CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- When the next snapshot may start, and the delay in milliseconds that the host asks for.
    next_at INTEGER NOT NULL DEFAULT 0,
    crawl_delay INTEGER NOT NULL DEFAULT 0,
    asked TEXT,
    asked_at INTEGER,
    -- Number of its queued pages.
    queued INTEGER NOT NULL DEFAULT 0
) STRICT;
-- the hosts with the most queued pages, without counting all pages
CREATE INDEX host_queued ON host (queued, next_at) WHERE queued > 0;

CREATE TABLE snapshot (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    crawl_id INTEGER NOT NULL REFERENCES crawl (id),
    -- The page that links to it, which may be deleted. Without a foreign key, as all columns with the id of a
    -- page that have no index: deleting a page would read the whole table for it.
    parent_id INTEGER,
    host_id INTEGER NOT NULL REFERENCES host (id),
    url TEXT NOT NULL,
    -- The URL without scheme, www., fragment and the arguments of campaigns: snapshots with the same key are
    -- versions of a page.
    url_key TEXT NOT NULL,
    title TEXT,
    bookmarked_at TEXT,
    depth INTEGER NOT NULL,
    -- 1 if a user gave the page, to whose networks the hooks of its crawl have access. Equal times do not prove
    -- it: a long list takes several turns, and pages of a fleet come later.
    given INTEGER NOT NULL DEFAULT 0 CHECK (given IN (0, 1)),
    -- 1 if it is kept from deletion.
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    -- JSON object of the settings of the page alone, over those of its crawl. NULL: none.
    config TEXT,
    status TEXT NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'started', 'paused', 'sealed', 'cancelled')),
    reason TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    changed_at INTEGER,
    retry_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    token TEXT,
    directory TEXT,
    -- Random identity of the directory, drawn before the first start.
    identity TEXT,
    -- Number of the present visit: one request for the page by all of its hooks.
    visit INTEGER NOT NULL DEFAULT 0,
    -- HTTP status of the document as the newest visit got it, and the plugin that requested it. NULL: no
    -- hook reported a status.
    http_status INTEGER,
    http_plugin TEXT,
    -- When the server allows the next visit (Retry-After), and the visits in a row that it refused.
    http_until INTEGER,
    refused INTEGER NOT NULL DEFAULT 0,
    -- JSON of the answer of the server before a retry: status and plugin.
    earlier TEXT,
    -- Epoch of the lease under which a fleet gave the page to this node; 0 if none did, or once its end
    -- is in the outbox.
    epoch INTEGER NOT NULL DEFAULT 0,
    -- The epoch under which this node recorded the page in the fleet; 0 if it did not, or got the page again. The
    -- page is sent again with it to a database that lost transactions or was restored from a backup.
    recorded INTEGER NOT NULL DEFAULT 0,
    -- The fleet's database lost the page in a failover, and gave it to this node again with another id.
    replaced INTEGER NOT NULL DEFAULT 0 CHECK (replaced IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX snapshot_once ON snapshot (crawl_id, url) WHERE replaced = 0;
CREATE INDEX snapshot_due ON snapshot (crawl_id, retry_at, id) WHERE status = 'queued';
CREATE INDEX snapshot_lane ON snapshot (crawl_id, host_id, retry_at, id) WHERE status = 'queued';
CREATE INDEX snapshot_again ON snapshot (crawl_id, retry_at, id) WHERE status = 'queued' AND attempts > 0;
CREATE INDEX snapshot_url ON snapshot (url);
-- the versions of a page, and the pages below a prefix or of a host
CREATE INDEX snapshot_key ON snapshot (url_key, created_at);
-- the newest pages of a crawl, without sorting all of them
CREATE INDEX snapshot_crawl ON snapshot (crawl_id);
-- the pages of a crawl that a cancel has to stop, and why pages were cancelled, without reading all
CREATE INDEX snapshot_begun ON snapshot (crawl_id, id) WHERE status IN ('started', 'paused');
CREATE INDEX snapshot_cancelled ON snapshot (crawl_id, reason, directory) WHERE status = 'cancelled';
CREATE INDEX snapshot_leased ON snapshot (host_id) WHERE epoch > 0;
-- the newest pages with a status, without reading all
CREATE INDEX snapshot_http ON snapshot (http_status, id) WHERE http_status IS NOT NULL;
-- the pages that ended before their work was done, without reading all
CREATE INDEX snapshot_incomplete ON snapshot (crawl_id, id)
    WHERE status = 'sealed' AND reason IS NOT NULL;
-- the hosts of the pages that users gave to a crawl
CREATE INDEX snapshot_given ON snapshot (crawl_id, id) WHERE given;
-- the pinned pages of a crawl
CREATE INDEX snapshot_pinned ON snapshot (crawl_id, id) WHERE pinned;

CREATE TABLE tag (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE crawl_tag (
    crawl_id INTEGER NOT NULL REFERENCES crawl (id),
    tag_id INTEGER NOT NULL REFERENCES tag (id),
    PRIMARY KEY (crawl_id, tag_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot_tag (
    snapshot_id INTEGER NOT NULL REFERENCES snapshot (id),
    tag_id INTEGER NOT NULL REFERENCES tag (id),
    PRIMARY KEY (snapshot_id, tag_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE result (
    id INTEGER PRIMARY KEY,
    -- 'c' or 's' and the id of the crawl or snapshot.
    owner TEXT NOT NULL,
    crawl_id INTEGER NOT NULL REFERENCES crawl (id),
    snapshot_id INTEGER,
    plugin TEXT NOT NULL,
    hook TEXT NOT NULL,
    status TEXT NOT NULL,
    -- The visit of which the result is.
    visit INTEGER NOT NULL DEFAULT 0,
    output TEXT,
    error TEXT,
    files TEXT NOT NULL DEFAULT '[]',
    size INTEGER NOT NULL DEFAULT 0,
    -- JSON object of the numbers that the hook states. NULL: none.
    figures TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER,
    ended_at INTEGER,
    -- JSON of the row before a retry, until its end. If the retry loses a result, all return.
    earlier TEXT,
    UNIQUE (owner, plugin, hook)
) STRICT;
CREATE INDEX result_crawl ON result (crawl_id);

-- Variables without secrets of the processes of many runs.
CREATE TABLE environment (
    id INTEGER PRIMARY KEY,
    -- SHA-256 of the variables.
    digest BLOB NOT NULL UNIQUE,
    -- JSON object.
    variables TEXT NOT NULL
) STRICT;

-- Every unit that was started, or waits for its start. What a kind has in addition is in a table of its own
-- (check_result), or refers to its runs (copy).
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'starting', 'running', 'ended')),
    -- The runner that started the unit, its name, and the boot. NULL while it is queued, and if it needed no unit.
    epoch INTEGER REFERENCES runner (epoch),
    unit TEXT,
    boot TEXT,
    invocation TEXT,
    outcome TEXT,
    exit_code INTEGER,
    signal INTEGER,
    -- When the row was written, when systemd started the unit, when a background hook was ready.
    recorded_at INTEGER NOT NULL,
    started_at INTEGER,
    ready_at INTEGER,
    ended_at INTEGER,
    cpu_usec INTEGER,
    memory_peak INTEGER,
    io_read INTEGER,
    io_write INTEGER,
    ip_in INTEGER,
    ip_out INTEGER,
    -- Of workers and hooks alone.
    owner TEXT,
    crawl_id INTEGER REFERENCES crawl (id),
    snapshot_id INTEGER,
    plugin TEXT,
    hook TEXT,
    attempt INTEGER,
    argv TEXT,
    -- 1 once the crawl or snapshot was paused while the run was open.
    frozen INTEGER NOT NULL DEFAULT 0 CHECK (frozen IN (0, 1)),
    -- End of the lease of its host, in milliseconds on CLOCK_BOOTTIME, from which on the hook is not
    -- executed; NULL outside of a fleet.
    not_after INTEGER,
    -- The run of the worker that asked for it, working directory, time limit in milliseconds, and variables without secrets:
    -- those that many runs have in common, and as JSON those of the run alone.
    parent_id INTEGER,
    directory TEXT,
    time_limit INTEGER,
    environment_id INTEGER REFERENCES environment (id),
    own_variables TEXT,
    CHECK (unit IS NOT NULL OR status IN ('queued', 'ended')),
    CHECK ((crawl_id IS NULL) = (owner IS NULL))
) STRICT;
CREATE UNIQUE INDEX run_open ON run (unit) WHERE status IN ('starting', 'running');
CREATE INDEX run_queued ON run (kind, id) WHERE status = 'queued';
CREATE INDEX run_unit ON run (unit, id);
CREATE INDEX run_owner ON run (owner);
CREATE INDEX run_crawl ON run (crawl_id);

-- How many rows of a kind have a status; crawl 0 is the sum of all crawls.
CREATE TABLE tally (
    kind TEXT NOT NULL,
    crawl_id INTEGER NOT NULL,
    status TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, crawl_id, status)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER crawl_added AFTER INSERT ON crawl BEGIN
    INSERT INTO tally VALUES ('crawl', 0, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER crawl_moved AFTER UPDATE OF status ON crawl WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'crawl' AND crawl_id = 0 AND status = OLD.status;
    INSERT INTO tally VALUES ('crawl', 0, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER crawl_deleted AFTER DELETE ON crawl BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'crawl' AND crawl_id = 0 AND status = OLD.status;
    DELETE FROM tally WHERE kind IN ('snapshot', 'result') AND crawl_id = OLD.id;
END;
CREATE TRIGGER snapshot_added AFTER INSERT ON snapshot BEGIN
    INSERT INTO tally VALUES ('snapshot', 0, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO tally VALUES ('snapshot', NEW.crawl_id, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER snapshot_moved AFTER UPDATE OF status ON snapshot
WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET n = n - 1
        WHERE kind = 'snapshot' AND crawl_id IN (0, NEW.crawl_id) AND status = OLD.status;
    INSERT INTO tally VALUES ('snapshot', 0, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO tally VALUES ('snapshot', NEW.crawl_id, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER snapshot_deleted AFTER DELETE ON snapshot BEGIN
    UPDATE tally SET n = n - 1
        WHERE kind = 'snapshot' AND crawl_id IN (0, OLD.crawl_id) AND status = OLD.status;
END;
CREATE TRIGGER snapshot_joins_host AFTER INSERT ON snapshot WHEN NEW.status = 'queued' BEGIN
    UPDATE host SET queued = queued + 1 WHERE id = NEW.host_id;
END;
CREATE TRIGGER snapshot_of_host_moved AFTER UPDATE OF status ON snapshot
WHEN (OLD.status = 'queued') <> (NEW.status = 'queued') BEGIN
    UPDATE host SET queued = queued + iif(NEW.status = 'queued', 1, -1) WHERE id = NEW.host_id;
END;
CREATE TRIGGER snapshot_leaves_host AFTER DELETE ON snapshot WHEN OLD.status = 'queued' BEGIN
    UPDATE host SET queued = queued - 1 WHERE id = OLD.host_id;
END;
CREATE TRIGGER result_added AFTER INSERT ON result BEGIN
    INSERT INTO tally VALUES ('result', NEW.crawl_id, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER result_moved AFTER UPDATE OF status ON result
WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET n = n - 1
        WHERE kind = 'result' AND crawl_id = NEW.crawl_id AND status = OLD.status;
    INSERT INTO tally VALUES ('result', NEW.crawl_id, NEW.status, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER result_deleted AFTER DELETE ON result BEGIN
    UPDATE tally SET n = n - 1
        WHERE kind = 'result' AND crawl_id = OLD.crawl_id AND status = OLD.status;
END;

-- How often hooks of a plugin succeeded and failed, whether their results are retried later or not.
CREATE TABLE plugin_use (
    plugin TEXT PRIMARY KEY,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- A result that returns after a retry has been counted.
CREATE TRIGGER plugin_used AFTER UPDATE OF status ON result
WHEN OLD.status <> NEW.status AND NEW.visit >= OLD.visit
    AND NEW.status IN ('succeeded', 'noresults', 'failed') BEGIN
    INSERT INTO plugin_use VALUES (NEW.plugin, NEW.status <> 'failed', NEW.status = 'failed')
        ON CONFLICT DO UPDATE SET succeeded = succeeded + excluded.succeeded,
            failed = failed + excluded.failed;
END;
CREATE TRIGGER plugin_used_at_once AFTER INSERT ON result
WHEN NEW.status IN ('succeeded', 'noresults', 'failed') BEGIN
    INSERT INTO plugin_use VALUES (NEW.plugin, NEW.status <> 'failed', NEW.status = 'failed')
        ON CONFLICT DO UPDATE SET succeeded = succeeded + excluded.succeeded,
            failed = failed + excluded.failed;
END;

-- How often hooks of a plugin ended with a status, counted as above, by their duration: the sums that a monitoring
-- system reads, because reading all results takes too long.
CREATE TABLE hook_end (
    plugin TEXT NOT NULL,
    status TEXT NOT NULL,
    -- The longest duration that is counted here, in milliseconds; 0 if the hook did not run.
    up_to INTEGER NOT NULL,
    n INTEGER NOT NULL,
    -- Sums of the durations, and of the bytes of output files.
    milliseconds INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (plugin, status, up_to)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER hook_ended AFTER UPDATE OF status ON result
WHEN OLD.status <> NEW.status AND NEW.visit >= OLD.visit
    AND NEW.status IN ('succeeded', 'noresults', 'failed', 'skipped') BEGIN
    INSERT INTO hook_end VALUES (NEW.plugin, NEW.status, CASE
        WHEN NEW.started_at IS NULL OR NEW.ended_at IS NULL THEN 0
        WHEN NEW.ended_at - NEW.started_at <= 100 THEN 100
        WHEN NEW.ended_at - NEW.started_at <= 500 THEN 500
        WHEN NEW.ended_at - NEW.started_at <= 1000 THEN 1000
        WHEN NEW.ended_at - NEW.started_at <= 2500 THEN 2500
        WHEN NEW.ended_at - NEW.started_at <= 5000 THEN 5000
        WHEN NEW.ended_at - NEW.started_at <= 10000 THEN 10000
        WHEN NEW.ended_at - NEW.started_at <= 30000 THEN 30000
        WHEN NEW.ended_at - NEW.started_at <= 60000 THEN 60000
        WHEN NEW.ended_at - NEW.started_at <= 120000 THEN 120000
        WHEN NEW.ended_at - NEW.started_at <= 300000 THEN 300000
        ELSE 9223372036854775807 END,
        1, max(coalesce(NEW.ended_at - NEW.started_at, 0), 0), NEW.size)
        ON CONFLICT DO UPDATE SET n = n + 1, milliseconds = milliseconds + excluded.milliseconds,
            bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER hook_ended_at_once AFTER INSERT ON result
WHEN NEW.status IN ('succeeded', 'noresults', 'failed', 'skipped') BEGIN
    INSERT INTO hook_end VALUES (NEW.plugin, NEW.status, CASE
        WHEN NEW.started_at IS NULL OR NEW.ended_at IS NULL THEN 0
        WHEN NEW.ended_at - NEW.started_at <= 100 THEN 100
        WHEN NEW.ended_at - NEW.started_at <= 500 THEN 500
        WHEN NEW.ended_at - NEW.started_at <= 1000 THEN 1000
        WHEN NEW.ended_at - NEW.started_at <= 2500 THEN 2500
        WHEN NEW.ended_at - NEW.started_at <= 5000 THEN 5000
        WHEN NEW.ended_at - NEW.started_at <= 10000 THEN 10000
        WHEN NEW.ended_at - NEW.started_at <= 30000 THEN 30000
        WHEN NEW.ended_at - NEW.started_at <= 60000 THEN 60000
        WHEN NEW.ended_at - NEW.started_at <= 120000 THEN 120000
        WHEN NEW.ended_at - NEW.started_at <= 300000 THEN 300000
        ELSE 9223372036854775807 END,
        1, max(coalesce(NEW.ended_at - NEW.started_at, 0), 0), NEW.size)
        ON CONFLICT DO UPDATE SET n = n + 1, milliseconds = milliseconds + excluded.milliseconds,
            bytes = bytes + excluded.bytes;
END;

-- Programs that plugins require, as found on this machine.
CREATE TABLE binary (
    name TEXT PRIMARY KEY,
    abspath TEXT NOT NULL,
    version TEXT,
    sha256 TEXT,
    provider TEXT NOT NULL,
    env TEXT NOT NULL DEFAULT '{}',
    stamp TEXT,
    found_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Health of each URL of each watch.
CREATE TABLE watch (
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    down_since INTEGER,
    PRIMARY KEY (name, url)
) STRICT, WITHOUT ROWID;

-- What a check is about, and what it found. Its run is queued with it.
CREATE TABLE check_result (
    run_id INTEGER PRIMARY KEY REFERENCES run (id),
    watch TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('status', 'archive', 'crawl', 'lighthouse', 'alert')),
    pool TEXT NOT NULL,
    url TEXT NOT NULL,
    request TEXT NOT NULL,
    keep_for INTEGER NOT NULL,
    keep_until INTEGER,
    -- NULL while it is not known: the check has not ended, or found out nothing.
    ok INTEGER CHECK (ok IN (0, 1)),
    status_code INTEGER,
    response_ms INTEGER,
    -- JSON of what the check found; NULL until it has ended.
    record TEXT
) STRICT;
CREATE UNIQUE INDEX check_open ON check_result (watch, kind, url)
    WHERE record IS NULL AND kind <> 'alert';
-- the queues of the pools, and how many checks of each run
CREATE INDEX check_pool ON check_result (pool, run_id) WHERE record IS NULL;
CREATE INDEX check_history ON check_result (watch, kind, url, run_id, ok);
CREATE INDEX check_old ON check_result (keep_until) WHERE keep_until IS NOT NULL;
CREATE TRIGGER check_expired AFTER DELETE ON check_result BEGIN
    DELETE FROM run WHERE id = OLD.run_id;
END;

-- The copies of sealed snapshots in the store; snapshot 0 is the test of the store.
CREATE TABLE copy (
    snapshot_id INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('idle', 'waiting', 'running')),
    task TEXT NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL,
    reason TEXT,
    again INTEGER NOT NULL CHECK (again IN (0, 1)),
    -- JSON of the newest verified object.
    object TEXT,
    verified_at INTEGER,
    is_local INTEGER NOT NULL CHECK (is_local IN (0, 1)),
    local_since INTEGER,
    keep_until INTEGER,
    -- The newest transfer.
    run_id INTEGER REFERENCES run (id)
) STRICT;
CREATE INDEX copy_due ON copy (due_at) WHERE status = 'waiting';
CREATE INDEX copy_running ON copy (task) WHERE status = 'running';
CREATE INDEX copy_run ON copy (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX copy_local ON copy (local_since)
    WHERE status = 'idle' AND is_local = 1 AND object IS NOT NULL;
CREATE INDEX copy_failed ON copy (attempts) WHERE status = 'waiting' AND attempts > 0;

-- Deleted crawls and snapshots whose directories are still to be removed. A crawl keeps its row while it has
-- pages, which are deleted in pieces.
CREATE TABLE deletion (
    -- 'c' or 's' and the id.
    owner TEXT PRIMARY KEY,
    -- Its crawl, on whose list it is; the id of a crawl itself.
    crawl_id INTEGER NOT NULL,
    directory TEXT,
    -- Identity of the directory: one that belongs to another page stays.
    identity TEXT,
    -- Key of the URL of a snapshot, on whose list it is. NULL: a crawl.
    url_key TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    -- The run of the unit that removes it.
    run_id INTEGER REFERENCES run (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deletion_due ON deletion (due_at, owner) WHERE run_id IS NULL;
CREATE INDEX deletion_run ON deletion (run_id) WHERE run_id IS NOT NULL;

-- Pages that are entries of a list and are kept without a visit, which wait for the unit that writes the
-- directories of many of them.
CREATE TABLE entry (
    snapshot_id INTEGER PRIMARY KEY,
    crawl_id INTEGER NOT NULL REFERENCES crawl (id),
    -- Failed attempts in a row.
    attempts INTEGER NOT NULL DEFAULT 0,
    -- The run of the unit that writes its directory. NULL: none.
    run_id INTEGER REFERENCES run (id)
) STRICT;
CREATE INDEX entry_crawl ON entry (crawl_id, snapshot_id);
CREATE INDEX entry_run ON entry (run_id) WHERE run_id IS NOT NULL;
-- A page that ends meanwhile keeps its row until the unit has ended, so that it is not deleted before.
CREATE TRIGGER entry_over AFTER UPDATE OF status ON snapshot
WHEN NEW.status IN ('sealed', 'cancelled') BEGIN
    DELETE FROM entry WHERE snapshot_id = NEW.id AND run_id IS NULL;
END;

-- The rules of Retention=, as of when the pages were looked at: one row. Without rules, the triggers add nothing.
CREATE TABLE retention (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    rules TEXT NOT NULL DEFAULT '',
    -- After a change of the rules: the page up to which all were looked at. NULL: all were.
    swept_to INTEGER
) STRICT;
INSERT INTO retention (one) VALUES (1);
-- Pages that are due at a time by a rule, or have changed so that they may be.
CREATE TABLE retention_queue (
    snapshot_id INTEGER PRIMARY KEY,
    due_at INTEGER NOT NULL
) STRICT;
CREATE INDEX retention_due ON retention_queue (due_at);
-- Crawls whose pages must be looked at because they have ended, and the page up to which this is done.
CREATE TABLE retention_crawl (
    crawl_id INTEGER PRIMARY KEY,
    swept_to INTEGER NOT NULL
) STRICT;
CREATE TRIGGER crawl_ages AFTER UPDATE OF status ON crawl
WHEN OLD.status <> NEW.status AND NEW.status IN ('sealed', 'cancelled')
    AND (SELECT rules <> '' FROM retention) BEGIN
    INSERT INTO retention_crawl VALUES (NEW.id, 0) ON CONFLICT DO UPDATE SET swept_to = 0;
END;
CREATE TRIGGER crawl_unpinned AFTER UPDATE OF pinned ON crawl
WHEN OLD.pinned AND NOT NEW.pinned AND (SELECT rules <> '' FROM retention) BEGIN
    INSERT INTO retention_crawl VALUES (NEW.id, 0) ON CONFLICT DO UPDATE SET swept_to = 0;
END;
CREATE TRIGGER snapshot_unpinned AFTER UPDATE OF pinned ON snapshot
WHEN OLD.pinned AND NOT NEW.pinned AND (SELECT rules <> '' FROM retention) BEGIN
    INSERT INTO retention_queue VALUES (NEW.id, 0) ON CONFLICT DO UPDATE SET due_at = 0;
END;
CREATE TRIGGER copy_over AFTER UPDATE OF status ON copy
WHEN OLD.status <> NEW.status AND NEW.status = 'idle' AND (SELECT rules <> '' FROM retention) BEGIN
    INSERT INTO retention_queue VALUES (NEW.snapshot_id, 0) ON CONFLICT DO UPDATE SET due_at = 0;
END;
CREATE TRIGGER tagged_ages AFTER INSERT ON snapshot_tag
WHEN (SELECT rules <> '' FROM retention) BEGIN
    INSERT INTO retention_queue SELECT id, 0 FROM snapshot
        WHERE id = NEW.snapshot_id AND status IN ('sealed', 'cancelled')
        ON CONFLICT DO UPDATE SET due_at = 0;
END;
CREATE TRIGGER snapshot_gone AFTER DELETE ON snapshot BEGIN
    DELETE FROM retention_queue WHERE snapshot_id = OLD.id;
END;
CREATE TRIGGER crawl_gone AFTER DELETE ON crawl BEGIN
    DELETE FROM retention_crawl WHERE crawl_id = OLD.id;
END;

-- The bytes of the output files of all pages and crawls ('all'), of those with a tag ('t' and its id) and of those
-- of a user ('u' and the user id), for Quota=.
CREATE TABLE stored (
    scope TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL,
    -- The page up to which none can be deleted, until a crawl ends or something is unpinned or copied.
    looked_to INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TRIGGER result_stored AFTER INSERT ON result WHEN NEW.size <> 0 BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT scope, NEW.size FROM (SELECT 'all' AS scope
            UNION SELECT 't' || tag_id FROM crawl_tag WHERE crawl_id = NEW.crawl_id
            UNION SELECT 't' || tag_id FROM snapshot_tag WHERE snapshot_id = NEW.snapshot_id
            UNION SELECT 'u' || value FROM crawl, json_each(users) WHERE crawl.id = NEW.crawl_id) WHERE true
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER result_resized AFTER UPDATE OF size ON result WHEN NEW.size <> OLD.size BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT scope, NEW.size - OLD.size FROM (SELECT 'all' AS scope
            UNION SELECT 't' || tag_id FROM crawl_tag WHERE crawl_id = NEW.crawl_id
            UNION SELECT 't' || tag_id FROM snapshot_tag WHERE snapshot_id = NEW.snapshot_id
            UNION SELECT 'u' || value FROM crawl, json_each(users) WHERE crawl.id = NEW.crawl_id) WHERE true
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER result_not_stored AFTER DELETE ON result WHEN OLD.size <> 0 BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT scope, -OLD.size FROM (SELECT 'all' AS scope
            UNION SELECT 't' || tag_id FROM crawl_tag WHERE crawl_id = OLD.crawl_id
            UNION SELECT 't' || tag_id FROM snapshot_tag WHERE snapshot_id = OLD.snapshot_id
            UNION SELECT 'u' || value FROM crawl, json_each(users) WHERE crawl.id = OLD.crawl_id) WHERE true
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_tagged AFTER INSERT ON snapshot_tag BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT 't' || NEW.tag_id, coalesce(sum(size), 0) FROM result
        WHERE owner = 's' || NEW.snapshot_id AND NOT EXISTS (SELECT 1 FROM crawl_tag
            WHERE crawl_tag.crawl_id = result.crawl_id AND tag_id = NEW.tag_id)
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_untagged AFTER DELETE ON snapshot_tag BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT 't' || OLD.tag_id, -coalesce(sum(size), 0) FROM result
        WHERE owner = 's' || OLD.snapshot_id AND NOT EXISTS (SELECT 1 FROM crawl_tag
            WHERE crawl_tag.crawl_id = result.crawl_id AND tag_id = OLD.tag_id)
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_crawl_tagged AFTER INSERT ON crawl_tag BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT 't' || NEW.tag_id, coalesce(sum(size), 0) FROM result
        WHERE crawl_id = NEW.crawl_id AND NOT EXISTS (SELECT 1 FROM snapshot_tag
            WHERE snapshot_tag.snapshot_id = result.snapshot_id AND tag_id = NEW.tag_id)
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_crawl_untagged AFTER DELETE ON crawl_tag BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT 't' || OLD.tag_id, -coalesce(sum(size), 0) FROM result
        WHERE crawl_id = OLD.crawl_id AND NOT EXISTS (SELECT 1 FROM snapshot_tag
            WHERE snapshot_tag.snapshot_id = result.snapshot_id AND tag_id = OLD.tag_id)
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_for_users AFTER UPDATE OF users ON crawl WHEN OLD.users <> NEW.users BEGIN
    INSERT INTO stored (scope, bytes)
        SELECT 'u' || value, -(SELECT coalesce(sum(size), 0) FROM result WHERE crawl_id = NEW.id)
        FROM json_each(OLD.users) WHERE true
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
    INSERT INTO stored (scope, bytes)
        SELECT 'u' || value, (SELECT coalesce(sum(size), 0) FROM result WHERE crawl_id = NEW.id)
        FROM json_each(NEW.users) WHERE true
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER crawl_deletable AFTER UPDATE OF status, pinned ON crawl
WHEN NEW.status IN ('sealed', 'cancelled') AND NOT NEW.pinned BEGIN
    UPDATE stored SET looked_to = 0 WHERE looked_to > 0;
END;
CREATE TRIGGER snapshot_deletable AFTER UPDATE OF pinned ON snapshot WHEN NOT NEW.pinned BEGIN
    UPDATE stored SET looked_to = 0 WHERE looked_to > 0;
END;
CREATE TRIGGER copy_deletable AFTER UPDATE OF status ON copy
WHEN OLD.status <> NEW.status AND NEW.status = 'idle' BEGIN
    UPDATE stored SET looked_to = 0 WHERE looked_to > 0;
END;

-- Snapshots that the index of full text search does not have as their rows are: those that ended, changed
-- afterwards, or were deleted.
CREATE TABLE search_queue (
    snapshot_id INTEGER PRIMARY KEY,
    -- The run of the unit that indexes it. NULL: none, or it has changed since the start of the unit.
    run_id INTEGER REFERENCES run (id)
) STRICT;
CREATE INDEX search_queue_due ON search_queue (snapshot_id) WHERE run_id IS NULL;
CREATE INDEX search_queue_run ON search_queue (run_id) WHERE run_id IS NOT NULL;
CREATE TRIGGER snapshot_searchable AFTER UPDATE OF status, title, url, directory ON snapshot
WHEN NEW.status IN ('sealed', 'cancelled') AND NEW.directory IS NOT NULL BEGIN
    INSERT INTO search_queue (snapshot_id) VALUES (NEW.id)
        ON CONFLICT DO UPDATE SET run_id = NULL;
END;
CREATE TRIGGER snapshot_unsearchable AFTER DELETE ON snapshot WHEN OLD.directory IS NOT NULL BEGIN
    INSERT INTO search_queue (snapshot_id) VALUES (OLD.id)
        ON CONFLICT DO UPDATE SET run_id = NULL;
END;
CREATE TRIGGER snapshot_tagged AFTER INSERT ON snapshot_tag BEGIN
    INSERT INTO search_queue (snapshot_id)
        SELECT id FROM snapshot WHERE id = NEW.snapshot_id
            AND status IN ('sealed', 'cancelled') AND directory IS NOT NULL
        ON CONFLICT DO UPDATE SET run_id = NULL;
END;
CREATE TRIGGER snapshot_untagged AFTER DELETE ON snapshot_tag BEGIN
    INSERT INTO search_queue (snapshot_id)
        SELECT id FROM snapshot WHERE id = OLD.snapshot_id
            AND status IN ('sealed', 'cancelled') AND directory IS NOT NULL
        ON CONFLICT DO UPDATE SET run_id = NULL;
END;

-- The index of full text search: one row.
CREATE TABLE search_index (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- Number of its newest build, and the snapshot up to which the build has all. NULL: it is complete.
    build INTEGER NOT NULL,
    built_to INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL DEFAULT 0,
    -- The run of the unit that changes it, the build at its start, and built_to after its end.
    run_id INTEGER REFERENCES run (id),
    run_build INTEGER,
    next_to INTEGER
) STRICT;
INSERT INTO search_index (one, build, built_to) VALUES (1, 1, 0);

-- The fleet that this data directory belongs to: at most one row.
CREATE TABLE fleet (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    node INTEGER NOT NULL,
    -- Failovers of the fleet's database.
    generation INTEGER NOT NULL,
    -- What the database had in this generation, to notice one that went back: the highest ids that the fleet has
    -- given, the crawl of the latest pages that it acknowledged, and the latest record.
    given_crawl INTEGER NOT NULL DEFAULT 0,
    given_page INTEGER NOT NULL DEFAULT 0,
    submitted INTEGER,
    recorded_page INTEGER,
    recorded_epoch INTEGER
) STRICT;
-- Ids that the fleet reserved for crawls that are added on this node: first to last.
CREATE TABLE crawl_ids (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT;
-- Hosts that the fleet leased to this node.
CREATE TABLE lease (
    host_id INTEGER PRIMARY KEY REFERENCES host (id),
    epoch INTEGER NOT NULL,
    -- No page of the host runs from this time on, in milliseconds on CLOCK_BOOTTIME of a boot.
    boot TEXT NOT NULL,
    deadline INTEGER NOT NULL,
    -- JSON of the request that ends the lease, sent after the messages up to release_after.
    release TEXT,
    release_after INTEGER,
    -- 1: the host is for another node of the fleet: no page of it starts, and it is released when none runs.
    leaves INTEGER NOT NULL DEFAULT 0 CHECK (leaves IN (0, 1))
) STRICT;
-- Requests to the fleet's database, in order. Kept for a while after the database answered them.
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- 1: a command of a user, which the orders of the database do not know yet.
    is_command INTEGER NOT NULL,
    request TEXT NOT NULL,
    answered_at INTEGER,
    -- 1: kept for days after the answer; the others are removed after an hour.
    is_kept_long INTEGER NOT NULL DEFAULT 0 CHECK (is_kept_long IN (0, 1))
) STRICT;
CREATE INDEX outbox_queue ON outbox (number) WHERE answered_at IS NULL;
CREATE INDEX outbox_answered ON outbox (is_kept_long, answered_at) WHERE answered_at IS NOT NULL;
-- Crawls and pages that were not compared yet with the database of another generation, and those of them that it
-- lacks.
CREATE TABLE recall (
    lacks INTEGER NOT NULL CHECK (lacks IN (0, 1)),
    -- 0: a crawl, 1: a page.
    kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
    id INTEGER NOT NULL,
    PRIMARY KEY (lacks, kind, id)
) STRICT, WITHOUT ROWID;
