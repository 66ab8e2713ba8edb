-- The pages with a tag, without reading all.
CREATE INDEX snapshot_tag_page ON snapshot_tag (tag_id, snapshot_id);
CREATE INDEX crawl_tag_crawl ON crawl_tag (tag_id, crawl_id);
-- Tags change after pages have ended: the index of full text search gets these pages again, and rules for the old or
-- the new tag may delete them.
CREATE TRIGGER crawl_tagged AFTER INSERT ON crawl_tag BEGIN
    INSERT INTO search_queue (snapshot_id)
        SELECT id FROM snapshot WHERE crawl_id = NEW.crawl_id
            AND status IN ('sealed', 'cancelled') AND directory IS NOT NULL
        ON CONFLICT DO UPDATE SET run_id = NULL;
    INSERT INTO retention_crawl SELECT id, 0 FROM crawl
        WHERE id = NEW.crawl_id AND status IN ('sealed', 'cancelled') AND (SELECT rules <> '' FROM retention)
        ON CONFLICT DO UPDATE SET swept_to = 0;
END;
CREATE TRIGGER crawl_untagged AFTER DELETE ON crawl_tag BEGIN
    INSERT INTO search_queue (snapshot_id)
        SELECT id FROM snapshot WHERE crawl_id = OLD.crawl_id
            AND status IN ('sealed', 'cancelled') AND directory IS NOT NULL
        ON CONFLICT DO UPDATE SET run_id = NULL;
    INSERT INTO retention_crawl SELECT id, 0 FROM crawl
        WHERE id = OLD.crawl_id AND status IN ('sealed', 'cancelled') AND (SELECT rules <> '' FROM retention)
        ON CONFLICT DO UPDATE SET swept_to = 0;
END;
CREATE TRIGGER untagged_ages AFTER DELETE ON snapshot_tag WHEN (SELECT rules <> '' FROM retention) BEGIN
    INSERT INTO retention_queue SELECT id, 0 FROM snapshot
        WHERE id = OLD.snapshot_id AND status IN ('sealed', 'cancelled')
        ON CONFLICT DO UPDATE SET due_at = 0;
END;
CREATE TRIGGER tag_renamed AFTER UPDATE OF name ON tag WHEN OLD.name <> NEW.name BEGIN
    INSERT INTO search_queue (snapshot_id)
        SELECT id FROM snapshot WHERE status IN ('sealed', 'cancelled') AND directory IS NOT NULL
            AND (id IN (SELECT snapshot_id FROM snapshot_tag WHERE tag_id = NEW.id)
                OR crawl_id IN (SELECT crawl_id FROM crawl_tag WHERE tag_id = NEW.id))
        ON CONFLICT DO UPDATE SET run_id = NULL;
END;
