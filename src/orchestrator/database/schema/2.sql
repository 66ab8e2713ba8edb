-- When the page was visited: the start of the visit of which its files are, or, for an imported page, when
-- another program saved it; before its first start, when it was queued. The versions of a page have this order.
ALTER TABLE snapshot ADD COLUMN visited_at INTEGER NOT NULL DEFAULT 0;
-- A retry of a hook set the start of its page again, but not those of other results.
UPDATE snapshot SET visited_at = coalesce(
    (SELECT CAST(unixepoch(bookmarked_at, 'subsec') * 1000 AS INTEGER) FROM crawl
         WHERE crawl.id = crawl_id AND plugins LIKE '["import"%' AND bookmarked_at LIKE '____-__-__T%'
             AND unixepoch(bookmarked_at, 'subsec') * 1000 BETWEEN 0 AND snapshot.created_at),
    (SELECT min(r.started_at) FROM result AS r
         WHERE r.owner = 's' || snapshot.id AND r.started_at >= snapshot.created_at),
    started_at, created_at);
DROP INDEX snapshot_key;
-- the versions of a page, and the pages below a prefix or of a host
CREATE INDEX snapshot_key ON snapshot (url_key, visited_at);
