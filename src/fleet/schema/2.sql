-- Whether a user gave the page, to whose networks the hooks of its crawl have access. Earlier rows do not say:
-- their pages count as found, so that no page opens a network that the user did not name.
ALTER TABLE archivist.page ADD COLUMN given boolean NOT NULL DEFAULT false;
