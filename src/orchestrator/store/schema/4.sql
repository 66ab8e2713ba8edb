-- The results before a retry, until its end: JSON of the row. If the retry loses one, all return.
ALTER TABLE result ADD COLUMN earlier TEXT;
-- JSON of the answer of the server before a retry: status and plugin.
ALTER TABLE snapshot ADD COLUMN earlier TEXT;
-- A result that returns has been counted.
DROP TRIGGER plugin_used;
CREATE TRIGGER plugin_used AFTER UPDATE OF status ON result
WHEN OLD.status <> NEW.status AND NEW.visit >= OLD.visit
    AND NEW.status IN ('succeeded', 'noresults', 'failed') BEGIN
    INSERT INTO plugin_use VALUES (NEW.plugin, NEW.status <> 'failed', NEW.status = 'failed')
        ON CONFLICT DO UPDATE SET succeeded = succeeded + excluded.succeeded,
            failed = failed + excluded.failed;
END;
-- the pages that ended before their work was done, without reading all
CREATE INDEX snapshot_incomplete ON snapshot (crawl_id, id)
    WHERE status = 'sealed' AND reason IS NOT NULL;
-- Random identity of the directory, drawn before the first start; NULL in rows of older versions.
ALTER TABLE snapshot ADD COLUMN identity TEXT;
ALTER TABLE crawl ADD COLUMN identity TEXT;
-- Whether a user gave the page, to whose networks the hooks of its crawl have access. Equal times do not prove it:
-- a long list takes several turns, and pages of a fleet come later. For earlier rows there is nothing else.
ALTER TABLE snapshot ADD COLUMN given INTEGER NOT NULL DEFAULT 0;
UPDATE snapshot SET given = 1 WHERE parent_id IS NULL
    AND created_at = (SELECT created_at FROM crawl WHERE crawl.id = crawl_id);
-- the hosts of the pages that users gave to a crawl
CREATE INDEX snapshot_given ON snapshot (crawl_id, id) WHERE given;
-- SHA-256 of list, options and user, if a command in the foreground added the crawl: the same command joins
-- it instead of adding another one. NULL once its settings were changed, its pages cancelled, or it has ended.
ALTER TABLE crawl ADD COLUMN foreground BLOB;
CREATE INDEX crawl_foreground ON crawl (foreground) WHERE foreground IS NOT NULL;
CREATE TRIGGER crawl_left AFTER UPDATE OF status ON crawl
WHEN NEW.foreground IS NOT NULL AND NEW.status IN ('sealed', 'cancelled') BEGIN
    UPDATE crawl SET foreground = NULL WHERE id = NEW.id;
END;
-- The process of a run: the worker that asked for it, working directory, time limit in milliseconds, and variables
-- without secrets: those that many runs have in common, and as JSON those of the run alone.
CREATE TABLE environment (
    id INTEGER PRIMARY KEY,
    -- SHA-256 of the variables.
    digest BLOB NOT NULL UNIQUE,
    -- JSON object.
    variables TEXT NOT NULL
);
ALTER TABLE run ADD COLUMN parent_id INTEGER REFERENCES run (id);
ALTER TABLE run ADD COLUMN directory TEXT;
ALTER TABLE run ADD COLUMN time_limit INTEGER;
ALTER TABLE run ADD COLUMN environment_id INTEGER REFERENCES environment (id);
ALTER TABLE run ADD COLUMN own_variables TEXT;
-- JSON object of the settings of the page alone, over those of its crawl. NULL: none.
ALTER TABLE snapshot ADD COLUMN config TEXT;
-- The host is for another node of the fleet: no page of it starts, and it is released when none runs.
ALTER TABLE lease ADD COLUMN leaves INTEGER NOT NULL DEFAULT 0;
-- lists of crawls, newest first: nodes of a fleet reserve ids in blocks
CREATE INDEX crawl_created ON crawl (created_at, id);
