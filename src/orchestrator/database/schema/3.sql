-- Id of the user who keeps it from deletion, who may end that again; NULL if it is not pinned. Older pins are those of
-- root.
ALTER TABLE crawl ADD COLUMN pinned_by INTEGER;
ALTER TABLE snapshot ADD COLUMN pinned_by INTEGER;
UPDATE crawl SET pinned_by = 0 WHERE pinned;
UPDATE snapshot SET pinned_by = 0 WHERE pinned;
