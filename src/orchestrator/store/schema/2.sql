-- HTTP status of the document as the newest visit got it, and the plugin that requested it. NULL: no
-- hook reported a status.
ALTER TABLE snapshot ADD COLUMN http_status INTEGER;
ALTER TABLE snapshot ADD COLUMN http_plugin TEXT;
-- the newest pages with a status, without reading all
CREATE INDEX snapshot_http ON snapshot (http_status, id) WHERE http_status IS NOT NULL;
