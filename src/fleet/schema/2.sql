-- Whether a user gave the page, to whose networks the hooks of its crawl have access. Earlier rows do not say:
-- their pages count as found, so that no page opens a network that the user did not name.
ALTER TABLE archivist.page ADD COLUMN given boolean NOT NULL DEFAULT false;
-- Number of hosts that the node could work on at its latest renewal, if its claims are not filled, for which loaded
-- nodes hand over some; and whether it knows that it drains, and so starts no page.
ALTER TABLE archivist.node ADD COLUMN wanting integer NOT NULL DEFAULT 0;
ALTER TABLE archivist.node ADD COLUMN drains boolean NOT NULL DEFAULT false;
-- Name of a node that has left, whose pages are still there.
ALTER TABLE archivist.node ADD COLUMN former text;
-- Duration of leases that the node is configured for; NULL if it leaves that to others.
ALTER TABLE archivist.node ADD COLUMN lease_ms bigint CHECK (lease_ms > 0);
-- Directory of the page on its node, and nodes with copies from before a retry.
ALTER TABLE archivist.page ADD COLUMN directory text;
ALTER TABLE archivist.page ADD COLUMN copies bigint[] NOT NULL DEFAULT '{}';
-- Whether the crawl leaves out pages that other crawls have or are going to archive, and the number of these.
ALTER TABLE archivist.crawl ADD COLUMN only_new boolean NOT NULL DEFAULT false;
ALTER TABLE archivist.tally ADD COLUMN known bigint NOT NULL DEFAULT 0;
-- Lists of crawls, newest first: nodes reserve ids in blocks.
CREATE INDEX crawl_created ON archivist.crawl (created_at, id);
