-- What a page lacks that was not saved (`Unsaved`); NULL if it was. It is written when the page is sealed.
ALTER TABLE snapshot ADD COLUMN unsaved TEXT DEFAULT 'visit';
UPDATE snapshot SET unsaved = CASE
    WHEN http_status >= 400 THEN 'error'
    WHEN EXISTS (SELECT 1 FROM result WHERE owner = 's' || snapshot.id
        AND plugin = 'chromium' AND result.status = 'failed') THEN 'document'
    WHEN EXISTS (SELECT 1 FROM result WHERE owner = 's' || snapshot.id
        AND result.status = 'succeeded' AND size > 0
        AND (plugin NOT IN ('chromium', 'favicon', 'hashes', 'headers', 'verify') OR files LIKE '%"path":"document"%'))
        THEN CASE WHEN reason IS NULL THEN NULL ELSE 'work' END
    WHEN NOT EXISTS (SELECT 1 FROM result WHERE owner = 's' || snapshot.id AND result.status <> 'noresults')
        AND EXISTS (SELECT 1 FROM result WHERE owner = 's' || snapshot.id AND plugin = 'import') THEN 'visit'
    WHEN http_status IS NULL THEN 'document'
    ELSE 'files' END
WHERE status IN ('sealed', 'cancelled');
-- the pages that were not saved, without reading all
CREATE INDEX snapshot_unsaved ON snapshot (crawl_id, id) WHERE status = 'sealed' AND unsaved IS NOT NULL;
-- Pages that were not saved and have no reason get one, which lists and retries show.
UPDATE snapshot SET reason = 'nothing of the page was saved'
WHERE status = 'sealed' AND reason IS NULL AND unsaved = 'document';

CREATE TRIGGER snapshot_judged AFTER UPDATE OF unsaved ON snapshot
WHEN NEW.status IN ('sealed', 'cancelled') AND NEW.directory IS NOT NULL AND OLD.unsaved IS NOT NEW.unsaved BEGIN
    INSERT INTO search_queue (snapshot_id) VALUES (NEW.id)
        ON CONFLICT DO UPDATE SET run_id = NULL;
END;
