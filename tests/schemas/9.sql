-- A database of schema 9 (archivist 0.1.0) with rows in every table. Never edited: every later archivist opens it.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO "binary" VALUES('wget','/usr/bin/wget','1.25.0-2','1682f2afcb3092f841c087e28f9fa29b721ad14a661f21bcf2dca28f05f42ce7','env','{"WGETRC":"/etc/wgetrc"}','609520 1749999999 0',1799999000000);
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
INSERT INTO "check_result" VALUES(10,'site','status','fast','https://example.org/','','done',1795253000000,1795253000100,1795253000200,259200000,1795512200200,3,'archivist-check-status-10.service','b00t','1234','{"kind":"exit","detail":0}',0,408,10000,'{"ok":false,"status_code":408,"response_ms":10000,"error":"no answer"}');
INSERT INTO "check_result" VALUES(11,'site','lighthouse','slow','https://example.org/','{"url":"https://example.org/"}','running',1795253000000,1795253000100,NULL,259200000,NULL,3,'archivist-check-lighthouse-11.service','b00t',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "check_result" VALUES(12,'site','crawl','slow','https://example.org/','{"url":"https://example.org/"}','queued',1795253000000,NULL,NULL,259200000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
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
, last_host INTEGER NOT NULL DEFAULT 0, only_new INTEGER NOT NULL DEFAULT 0, hook_user INTEGER NOT NULL DEFAULT 0, users TEXT, persona TEXT);
INSERT INTO "crawl" VALUES(1,'sealed','1 result failed','https://example.org/',1,'["wget","title"]','{"TIMEOUT":"30"}',1767225601000,1767225602000,1767225660000,1767225660000,NULL,1,1,NULL,'/var/lib/archivist/archive/20260101/example.org/c1',1,0,0,NULL,NULL);
INSERT INTO "crawl" VALUES(2,'started',NULL,'https://example.com/a?b=1',0,'[]','{}',1767312001000,1767312002000,NULL,1767312002000,NULL,2,1,'0123456789abcdef0123456789abcdef','/var/lib/archivist/archive/20260102/example.com/c2',0,0,7,'[1000,1001]','work');
INSERT INTO "crawl" VALUES(3,'cancelled','cancelled by request','https://example.net/',0,'[]','{}',1767312003000,NULL,1767312004000,1767312004000,NULL,0,0,NULL,NULL,0,0,0,'[0]','');
CREATE TABLE crawl_tag (
    crawl_id INTEGER NOT NULL REFERENCES crawl (id),
    tag_id INTEGER NOT NULL REFERENCES tag (id),
    PRIMARY KEY (crawl_id, tag_id)
) WITHOUT ROWID;
INSERT INTO "crawl_tag" VALUES(1,1);
CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
, next_at INTEGER NOT NULL DEFAULT 0, crawl_delay INTEGER NOT NULL DEFAULT 0, asked TEXT, asked_at INTEGER);
INSERT INTO "host" VALUES(1,'example.org',1799999000000,5000,'robots.txt',1799998000000);
INSERT INTO "host" VALUES(2,'example.com',0,0,NULL,NULL);
INSERT INTO "host" VALUES(3,'example.net',0,0,NULL,NULL);
CREATE TABLE plugin_use (
        plugin TEXT PRIMARY KEY,
        succeeded INTEGER NOT NULL,
        failed INTEGER NOT NULL
    ) WITHOUT ROWID;
INSERT INTO "plugin_use" VALUES('title',0,1);
INSERT INTO "plugin_use" VALUES('wget',2,0);
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
INSERT INTO "result" VALUES(1,'s1',1,1,'wget','on_Snapshot__06_wget.finite.bg','succeeded','index.html',NULL,'[{"path":"index.html","mimetype":"text/html","size":1256}]',1256,1,1767225604000,1767225610000);
INSERT INTO "result" VALUES(2,'s1',1,1,'title','on_Snapshot__54_title','failed',NULL,'time limit reached','[]',0,2,1767225611000,1767225640000);
INSERT INTO "result" VALUES(3,'s1',1,1,'pdf','on_Snapshot__53_pdf','skipped',NULL,'chromium is missing','[]',0,0,NULL,1767225604000);
INSERT INTO "result" VALUES(4,'s2',1,2,'wget','on_Snapshot__06_wget.finite.bg','noresults',NULL,NULL,'[]',0,1,1767225642000,1767225643000);
INSERT INTO "result" VALUES(5,'c2',2,NULL,'chrome','on_CrawlSetup__90_chrome_launch.daemon.bg','started',NULL,NULL,'[]',0,1,1767312003000,NULL);
INSERT INTO "result" VALUES(6,'s3',2,3,'wget','on_Snapshot__06_wget.finite.bg','backoff',NULL,'lost: nothing is known of how it ended','[]',0,1,1767312006000,1767312007000);
INSERT INTO "result" VALUES(7,'s3',2,3,'title','on_Snapshot__54_title','queued',NULL,NULL,'[]',0,0,NULL,NULL);
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
, frozen INTEGER NOT NULL DEFAULT 0, recorded_at INTEGER, ready_at INTEGER);
INSERT INTO "run" VALUES(1,1,'crawl','c1',1,NULL,NULL,NULL,1,'archivist-crawl-1.service','0000000000000000000000000000000a','00000000000000000000000000000001','["/usr/bin/archivist","worker"]','ended','{"kind":"exit","detail":0}',0,NULL,1767225602000,1767225660000,21000,9000000,0,4096,NULL,NULL,0,NULL,NULL);
INSERT INTO "run" VALUES(2,1,'hook','s1',1,1,'wget','on_Snapshot__06_wget.finite.bg',1,'archivist-hook-wget-s1.service','0000000000000000000000000000000a','00000000000000000000000000000002','["/usr/share/archivist/plugins/wget/on_Snapshot__06_wget.finite.bg.py","--url=https://example.org/"]','ended','{"kind":"exit","detail":0}',0,NULL,1767225604000,1767225610000,150000,30000000,8192,12288,4000,900,0,1767225603990,1767225605500);
INSERT INTO "run" VALUES(3,1,'hook','s1',1,1,'title','on_Snapshot__54_title',2,'archivist-hook-title-s1.service','0000000000000000000000000000000a','00000000000000000000000000000003','["title"]','ended','{"kind":"time-limit"}',NULL,NULL,1767225611000,1767225640000,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "run" VALUES(4,1,'snapshot','s2',1,2,NULL,NULL,3,'archivist-snapshot-2.service','0000000000000000000000000000000a',NULL,'["/usr/bin/archivist","worker"]','ended','{"kind":"signal","detail":9}',NULL,9,1767225641000,1767225659000,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "run" VALUES(5,1,'hook','s3',2,3,'wget','on_Snapshot__06_wget.finite.bg',1,'archivist-hook-wget-s3.service','0000000000000000000000000000000a',NULL,'["wget"]','ended','{"kind":"lost"}',NULL,NULL,1767312006000,1767312007000,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "run" VALUES(6,1,'hook','s3',2,3,'dom','on_Snapshot__52_dom',1,'archivist-hook-dom-s3.service','0000000000000000000000000000000a',NULL,'["dom"]','ended','{"kind":"not-started","detail":"its user does not exist, or a user namespace cannot be made"}',NULL,NULL,1767312006000,1767312006000,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "run" VALUES(7,2,'crawl','c2',2,NULL,NULL,NULL,2,'archivist-crawl-2.service','0000000000000000000000000000000b',NULL,'["/usr/bin/archivist","worker"]','running',NULL,NULL,NULL,1767312002000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "run" VALUES(8,2,'hook','c2',2,NULL,'chrome','on_CrawlSetup__90_chrome_launch.daemon.bg',1,'archivist-hook-chrome-chrome_launch-c2.service','0000000000000000000000000000000b',NULL,'["chrome"]','running',NULL,NULL,NULL,1767312003000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO "run" VALUES(9,2,'snapshot','s3',2,3,NULL,NULL,1,'archivist-snapshot-3.service','0000000000000000000000000000000b',NULL,'["/usr/bin/archivist","worker"]','starting',NULL,NULL,NULL,1767312005000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL);
CREATE TABLE runner (
    epoch INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'active', 'ended')),
    unit TEXT NOT NULL,
    boot TEXT NOT NULL,
    since INTEGER NOT NULL
, seat INTEGER NOT NULL DEFAULT 0, pid INTEGER NOT NULL DEFAULT 0, machine TEXT NOT NULL DEFAULT '', namespace TEXT NOT NULL DEFAULT '', components TEXT NOT NULL DEFAULT '', restarts INTEGER NOT NULL DEFAULT 0);
INSERT INTO "runner" VALUES(1,'ended','archivist-orchestrator.service','0000000000000000000000000000000a',1767225600000,0,0,'','','',0);
INSERT INTO "runner" VALUES(2,'active','archivist-orchestrator.service','0000000000000000000000000000000b',1767312000000,1,311,'0000000000000000000000000000000c','pid:[4026531836]','orchestrator, database, bus name org.archivist1',1);
INSERT INTO "runner" VALUES(3,'waiting','archivist-run-412-0badcafe.scope','0000000000000000000000000000000b',1767312000000,3,412,'0000000000000000000000000000000c','pid:[4026531836]','orchestrator, database, bus name org.archivist1',0);
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
    directory TEXT, bookmarked_at TEXT,
    UNIQUE (crawl_id, url)
);
INSERT INTO "snapshot" VALUES(1,1,NULL,1,'https://example.org/','Example ☂',0,'sealed',NULL,1767225601000,1767225603000,1767225650000,1767225650000,NULL,1,NULL,'/var/lib/archivist/archive/20260101/example.org/s1','2024-02-03T04:05:06Z');
INSERT INTO "snapshot" VALUES(2,1,1,1,'https://example.org/deeper',NULL,1,'sealed','given up after 3 attempts, the last: worker: ended by SIGKILL',1767225640000,1767225641000,1767225659000,1767225659000,NULL,3,NULL,'/var/lib/archivist/archive/20260101/example.org/s2',NULL);
INSERT INTO "snapshot" VALUES(3,2,NULL,2,'https://example.com/a?b=1',NULL,0,'started',NULL,1767312001000,1767312005000,NULL,1767312005000,NULL,1,'fedcba9876543210fedcba9876543210','/var/lib/archivist/archive/20260102/example.com/s3',NULL);
INSERT INTO "snapshot" VALUES(4,2,NULL,2,'https://example.com/later',NULL,0,'queued','worker: watchdog; attempt 1 of 3',1767312001000,1767312006000,NULL,1767312007000,4102444800000,1,NULL,NULL,NULL);
INSERT INTO "snapshot" VALUES(5,3,NULL,3,'https://example.net/',NULL,0,'cancelled','cancelled by request',1767312003000,NULL,1767312004000,1767312004000,NULL,0,NULL,NULL,NULL);
CREATE TABLE snapshot_tag (
    snapshot_id INTEGER NOT NULL REFERENCES snapshot (id),
    tag_id INTEGER NOT NULL REFERENCES tag (id),
    PRIMARY KEY (snapshot_id, tag_id)
) WITHOUT ROWID;
INSERT INTO "snapshot_tag" VALUES(1,1);
INSERT INTO "snapshot_tag" VALUES(1,2);
CREATE TABLE tag (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
INSERT INTO "tag" VALUES(1,'news');
INSERT INTO "tag" VALUES(2,'to read');
CREATE TABLE tally (
    kind TEXT NOT NULL,
    crawl_id INTEGER NOT NULL,
    status TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, crawl_id, status)
) WITHOUT ROWID;
INSERT INTO "tally" VALUES('crawl',0,'cancelled',1);
INSERT INTO "tally" VALUES('crawl',0,'sealed',1);
INSERT INTO "tally" VALUES('crawl',0,'started',1);
INSERT INTO "tally" VALUES('result',1,'failed',1);
INSERT INTO "tally" VALUES('result',1,'noresults',1);
INSERT INTO "tally" VALUES('result',1,'skipped',1);
INSERT INTO "tally" VALUES('result',1,'succeeded',1);
INSERT INTO "tally" VALUES('result',2,'backoff',1);
INSERT INTO "tally" VALUES('result',2,'queued',1);
INSERT INTO "tally" VALUES('result',2,'started',1);
INSERT INTO "tally" VALUES('snapshot',0,'cancelled',1);
INSERT INTO "tally" VALUES('snapshot',0,'queued',1);
INSERT INTO "tally" VALUES('snapshot',0,'sealed',2);
INSERT INTO "tally" VALUES('snapshot',0,'started',1);
INSERT INTO "tally" VALUES('snapshot',1,'sealed',2);
INSERT INTO "tally" VALUES('snapshot',2,'queued',1);
INSERT INTO "tally" VALUES('snapshot',2,'started',1);
INSERT INTO "tally" VALUES('snapshot',3,'cancelled',1);
CREATE TABLE watch (
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    down_since INTEGER,
    PRIMARY KEY (name, url)
) WITHOUT ROWID;
INSERT INTO "watch" VALUES('site','https://example.com/',0,NULL,NULL);
INSERT INTO "watch" VALUES('site','https://example.org/',3,1795253000000,1795253000000);
CREATE UNIQUE INDEX runner_active ON runner (state) WHERE state = 'active';
CREATE INDEX crawl_due ON crawl (retry_at, id) WHERE status = 'queued';
CREATE INDEX crawl_started ON crawl (id) WHERE status = 'started';
CREATE INDEX snapshot_due ON snapshot (crawl_id, retry_at, id) WHERE status = 'queued';
CREATE INDEX result_crawl ON result (crawl_id);
CREATE UNIQUE INDEX run_open ON run (unit) WHERE status <> 'ended';
CREATE INDEX run_unit ON run (unit, id);
CREATE INDEX run_owner ON run (owner);
CREATE INDEX run_crawl ON run (crawl_id);
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
CREATE INDEX snapshot_lane ON snapshot (crawl_id, host_id, retry_at, id)
    WHERE status = 'queued';
CREATE UNIQUE INDEX check_open ON check_result (watch, kind, url)
    WHERE state <> 'done' AND kind <> 'alert';
CREATE UNIQUE INDEX check_unit ON check_result (unit)
    WHERE state IN ('starting', 'running');
CREATE INDEX check_queue ON check_result (pool, id) WHERE state = 'queued';
CREATE INDEX check_history ON check_result (watch, kind, url, id, ok);
CREATE INDEX check_old ON check_result (keep_until) WHERE keep_until IS NOT NULL;
CREATE INDEX snapshot_url ON snapshot (url);
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
CREATE INDEX crawl_hook_user ON crawl (hook_user)
        WHERE hook_user > 0 AND status IN ('queued', 'started', 'paused');
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runner',3);
INSERT INTO "sqlite_sequence" VALUES('crawl',3);
INSERT INTO "sqlite_sequence" VALUES('snapshot',5);
INSERT INTO "sqlite_sequence" VALUES('run',12);
COMMIT;
PRAGMA user_version = 9;
