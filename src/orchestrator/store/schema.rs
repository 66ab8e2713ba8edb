//! The schema as a list of migrations: `user_version` is how many of them a database has seen.
//! Entries are never edited, only added.

pub const MIGRATIONS: &[&str] = &[
    // 1: 0.1.0
    "
    CREATE TABLE runner (
        epoch INTEGER PRIMARY KEY AUTOINCREMENT,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'active', 'ended')),
        unit TEXT NOT NULL,
        boot TEXT NOT NULL,
        since INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX runner_active ON runner (state) WHERE state = 'active';

    CREATE TABLE crawl (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        status TEXT NOT NULL DEFAULT 'queued',
        reason TEXT,
        url TEXT NOT NULL,
        max_depth INTEGER NOT NULL,
        plugins TEXT NOT NULL,
        config TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        started_at INTEGER,
        ended_at INTEGER,
        changed_at INTEGER,
        retry_at INTEGER,
        attempts INTEGER NOT NULL DEFAULT 0,
        ready INTEGER NOT NULL DEFAULT 0,
        token TEXT,
        directory TEXT
    );
    CREATE INDEX crawl_due ON crawl (retry_at, id) WHERE status = 'queued';
    CREATE INDEX crawl_started ON crawl (id) WHERE status = 'started';

    CREATE TABLE host (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    );

    CREATE TABLE snapshot (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        crawl_id INTEGER NOT NULL REFERENCES crawl (id),
        parent_id INTEGER REFERENCES snapshot (id),
        host_id INTEGER REFERENCES host (id),
        url TEXT NOT NULL,
        title TEXT,
        depth INTEGER NOT NULL,
        status TEXT NOT NULL DEFAULT 'queued',
        reason TEXT,
        created_at INTEGER NOT NULL,
        started_at INTEGER,
        ended_at INTEGER,
        changed_at INTEGER,
        retry_at INTEGER,
        attempts INTEGER NOT NULL DEFAULT 0,
        token TEXT,
        directory TEXT,
        UNIQUE (crawl_id, url)
    );
    CREATE INDEX snapshot_due ON snapshot (crawl_id, retry_at, id) WHERE status = 'queued';

    CREATE TABLE tag (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    );
    CREATE TABLE crawl_tag (
        crawl_id INTEGER NOT NULL REFERENCES crawl (id),
        tag_id INTEGER NOT NULL REFERENCES tag (id),
        PRIMARY KEY (crawl_id, tag_id)
    ) WITHOUT ROWID;
    CREATE TABLE snapshot_tag (
        snapshot_id INTEGER NOT NULL REFERENCES snapshot (id),
        tag_id INTEGER NOT NULL REFERENCES tag (id),
        PRIMARY KEY (snapshot_id, tag_id)
    ) WITHOUT ROWID;

    CREATE TABLE result (
        id INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        crawl_id INTEGER NOT NULL REFERENCES crawl (id),
        snapshot_id INTEGER REFERENCES snapshot (id),
        plugin TEXT NOT NULL,
        hook TEXT NOT NULL,
        status TEXT NOT NULL,
        output TEXT,
        error TEXT,
        files TEXT NOT NULL DEFAULT '[]',
        size INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0,
        started_at INTEGER,
        ended_at INTEGER,
        UNIQUE (owner, plugin, hook)
    );
    CREATE INDEX result_crawl ON result (crawl_id);

    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        epoch INTEGER NOT NULL REFERENCES runner (epoch),
        kind TEXT NOT NULL,
        owner TEXT NOT NULL,
        crawl_id INTEGER NOT NULL REFERENCES crawl (id),
        snapshot_id INTEGER REFERENCES snapshot (id),
        plugin TEXT,
        hook TEXT,
        attempt INTEGER NOT NULL,
        unit TEXT NOT NULL,
        boot TEXT NOT NULL,
        invocation TEXT,
        argv TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('starting', 'running', 'ended')),
        outcome TEXT,
        exit_code INTEGER,
        signal INTEGER,
        started_at INTEGER,
        ended_at INTEGER,
        cpu_usec INTEGER,
        memory_peak INTEGER,
        io_read INTEGER,
        io_write INTEGER,
        ip_in INTEGER,
        ip_out INTEGER
    );
    CREATE UNIQUE INDEX run_open ON run (unit) WHERE status <> 'ended';
    CREATE INDEX run_unit ON run (unit, id);
    CREATE INDEX run_owner ON run (owner);
    CREATE INDEX run_crawl ON run (crawl_id);

    -- How many rows of a kind have a status: crawl 0 is the sum of all.
    CREATE TABLE tally (
        kind TEXT NOT NULL,
        crawl_id INTEGER NOT NULL,
        status TEXT NOT NULL,
        n INTEGER NOT NULL,
        PRIMARY KEY (kind, crawl_id, status)
    ) WITHOUT ROWID;
    CREATE TRIGGER crawl_added AFTER INSERT ON crawl BEGIN
        INSERT INTO tally VALUES ('crawl', 0, NEW.status, 1)
            ON CONFLICT DO UPDATE SET n = n + 1;
    END;
    CREATE TRIGGER crawl_moved AFTER UPDATE OF status ON crawl WHEN OLD.status <> NEW.status BEGIN
        UPDATE tally SET n = n - 1 WHERE kind = 'crawl' AND crawl_id = 0 AND status = OLD.status;
        INSERT INTO tally VALUES ('crawl', 0, NEW.status, 1)
            ON CONFLICT DO UPDATE SET n = n + 1;
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
    ",
    // 2: programs that plugins need
    "
    CREATE TABLE binary (
        name TEXT PRIMARY KEY,
        abspath TEXT NOT NULL,
        version TEXT,
        sha256 TEXT,
        provider TEXT NOT NULL,
        env TEXT NOT NULL DEFAULT '{}',
        stamp TEXT,
        found_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    ",
    // 3: what is paused; when the next snapshot of a host may start
    "
    ALTER TABLE run ADD COLUMN frozen INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE host ADD COLUMN next_at INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE host ADD COLUMN crawl_delay INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE host ADD COLUMN asked TEXT;
    ALTER TABLE host ADD COLUMN asked_at INTEGER;
    ALTER TABLE crawl ADD COLUMN last_host INTEGER NOT NULL DEFAULT 0;
    INSERT INTO host (name) SELECT '' WHERE EXISTS
        (SELECT 1 FROM snapshot WHERE host_id IS NULL) ON CONFLICT DO NOTHING;
    UPDATE snapshot SET host_id = (SELECT id FROM host WHERE name = '') WHERE host_id IS NULL;
    CREATE INDEX snapshot_lane ON snapshot (crawl_id, host_id, retry_at, id)
        WHERE status = 'queued';
    ",
    // 4: orchestrators that stand by
    "
    ALTER TABLE runner ADD COLUMN seat INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runner ADD COLUMN pid INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runner ADD COLUMN machine TEXT NOT NULL DEFAULT '';
    ALTER TABLE runner ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
    ALTER TABLE runner ADD COLUMN components TEXT NOT NULL DEFAULT '';
    ALTER TABLE runner ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
    ",
    // 5: watches and their checks; pages that a schedule archives once only, and when pages were bookmarked
    "
    CREATE TABLE watch (
        name TEXT NOT NULL,
        url TEXT NOT NULL,
        failures INTEGER NOT NULL DEFAULT 0,
        failing_since INTEGER,
        down_since INTEGER,
        PRIMARY KEY (name, url)
    ) WITHOUT ROWID;

    -- A check is one run, in a table of its own; ids of both are drawn from one sequence.
    CREATE TABLE check_result (
        id INTEGER PRIMARY KEY,
        watch TEXT NOT NULL,
        kind TEXT NOT NULL,
        pool TEXT NOT NULL,
        url TEXT NOT NULL,
        request TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'queued'
            CHECK (state IN ('queued', 'starting', 'running', 'done')),
        queued_at INTEGER NOT NULL,
        started_at INTEGER,
        ended_at INTEGER,
        keep_for INTEGER NOT NULL,
        keep_until INTEGER,
        epoch INTEGER,
        unit TEXT,
        boot TEXT,
        invocation TEXT,
        outcome TEXT,
        ok INTEGER,
        status_code INTEGER,
        response_ms INTEGER,
        record TEXT
    );
    CREATE UNIQUE INDEX check_open ON check_result (watch, kind, url)
        WHERE state <> 'done' AND kind <> 'alert';
    CREATE UNIQUE INDEX check_unit ON check_result (unit)
        WHERE state IN ('starting', 'running');
    CREATE INDEX check_queue ON check_result (pool, id) WHERE state = 'queued';
    CREATE INDEX check_history ON check_result (watch, kind, url, id, ok);
    CREATE INDEX check_old ON check_result (keep_until) WHERE keep_until IS NOT NULL;

    ALTER TABLE snapshot ADD COLUMN bookmarked_at TEXT;
    ALTER TABLE crawl ADD COLUMN only_new INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX snapshot_url ON snapshot (url);
    ",
    // 6: when a run was asked for and, in the background, ready; started_at is systemd's in the end
    "
    ALTER TABLE run ADD COLUMN recorded_at INTEGER;
    ALTER TABLE run ADD COLUMN ready_at INTEGER;
    ",
    // 7: how plugins fare
    "
    -- How often hooks of a plugin came to something, whatever became of their results since.
    CREATE TABLE plugin_use (
        plugin TEXT PRIMARY KEY,
        succeeded INTEGER NOT NULL,
        failed INTEGER NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO plugin_use
        SELECT plugin, sum(status <> 'failed'), sum(status = 'failed') FROM result
        WHERE status IN ('succeeded', 'noresults', 'failed') GROUP BY plugin;
    CREATE TRIGGER plugin_used AFTER UPDATE OF status ON result
    WHEN OLD.status <> NEW.status AND NEW.status IN ('succeeded', 'noresults', 'failed') BEGIN
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
    ",
    // 8: which of the hooks' users those of a crawl are
    "
    ALTER TABLE crawl ADD COLUMN hook_user INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX crawl_hook_user ON crawl (hook_user)
        WHERE hook_user > 0 AND status IN ('queued', 'started', 'paused');
    ",
    // 9: whose settings a crawl has
    "
    -- A JSON array of user ids; NULL for crawls that an older version added.
    ALTER TABLE crawl ADD COLUMN users TEXT;
    -- With which persona it was begun last, '' with none.
    ALTER TABLE crawl ADD COLUMN persona TEXT;
    ",
];

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// SHA-256 of every entry. A line is added with an entry, and never changed.
    const HASHES: &[&str] = &[
        "144166a42228b1d9f7a627acb9d57845fe485a1bc6e6c7a57fa9fadb294435d2",
        "e446d824e2cbfbf653696915bb16497c0275f6a3c79da317aa6ec7a4c9c928ec",
        "69d6fdaf21f50665bead03d1a0e7824835abb73144e352e5873054454c4d72b5",
        "595224473407ef7138895fc8aaac73649b1664e0a5ca7ae2ec9913aaf4e38ee2",
        "2e7f001d24fe049ad1ea4e09b243b98ded1c38ac09e69d78f9351284f6f2fb1c",
        "1546dbde90f04e23a1aa0d20dbec4c66ba239cb2552d6503eff941a50f50d034",
        "0363cb23eba6eca8b30fa51ea2a1ef0b319ade87655120b6a5a02f43e70590bd",
        "89d8682889ee1632b0a02a9387bdc516875c51eec0c4d3ef5203e2a9862808c5",
        "32af440a1dd68cb651059aa4bf064dda55b38af8b51ddbf53ae5cfe18a69d7a2",
    ];

    #[test]
    fn entries_are_never_edited() {
        let hash = |text: &&str| {
            let bytes = Sha256::digest(text.as_bytes());
            let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
            hex.collect::<String>()
        };
        let hashes: Vec<String> = MIGRATIONS.iter().map(hash).collect();
        assert_eq!(hashes, HASHES, "databases out there have seen the old text");
    }
}
