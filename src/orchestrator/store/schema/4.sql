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
