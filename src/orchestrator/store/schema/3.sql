-- When the server of a page allows the next visit (Retry-After), visits in a row that it refused, and
-- the number of the present visit: one request for the page by all of its hooks.
ALTER TABLE snapshot ADD COLUMN http_until INTEGER;
ALTER TABLE snapshot ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshot ADD COLUMN visit INTEGER NOT NULL DEFAULT 0;
-- The visit of which the result is.
ALTER TABLE result ADD COLUMN visit INTEGER NOT NULL DEFAULT 0;
