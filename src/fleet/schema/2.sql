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
-- Values with which statements about many rows would fail, so that one row would stop every node: sums and differences
-- beyond a bigint or an interval, infinite times, ids that programs do not read. Such a row is refused when it is written.
-- Ids end at 2^53 (ID_MAX in src/core/fleet), epochs at 2^62, spans of time at 1000 years.
ALTER TABLE archivist.fleet ADD CONSTRAINT fleet_values CHECK (
    lease_ms <= 31536000000000 AND generation BETWEEN 0 AND 1073741823 AND next_crawl BETWEEN 1 AND 9007199254740992
    AND claims_from < 'infinity' AND swept_at < 'infinity');
ALTER TABLE archivist.node ADD CONSTRAINT node_values CHECK (
    id > 0 AND isfinite(seen) AND incarnation BETWEEN 0 AND 4611686018427387904 AND lease_ms <= 31536000000000);
ALTER TABLE archivist.crawl ADD CONSTRAINT crawl_values CHECK (
    id BETWEEN 1 AND 9007199254740992 AND max_depth >= 0 AND urls_max >= 0 AND isfinite(created_at));
ALTER TABLE archivist.host ADD CONSTRAINT host_values CHECK (
    epoch BETWEEN 0 AND 4611686018427387904 AND delay_ms BETWEEN 0 AND 31536000000000
    AND lease_until < 'infinity' AND next_at < 'infinity' AND blocked_until < 'infinity' AND isfinite(ready_at));
ALTER TABLE archivist.page ADD CONSTRAINT page_values CHECK (
    id BETWEEN 1 AND 9007199254740992 AND crawl BETWEEN 1 AND 9007199254740992 AND parent BETWEEN 1 AND 9007199254740992
    AND depth >= 0 AND epoch BETWEEN 0 AND 4611686018427387904 AND attempts BETWEEN 0 AND 1000000000
    AND took_ms BETWEEN 0 AND 31536000000000 AND isfinite(created_at) AND isfinite(ended_at));
ALTER TABLE archivist.result ADD CONSTRAINT result_values CHECK (
    page BETWEEN 1 AND 9007199254740992 AND size BETWEEN 0 AND 9007199254740992 AND attempts BETWEEN 0 AND 1000000000 AND took_ms BETWEEN 0 AND 31536000000000);
ALTER TABLE archivist.tally ADD CONSTRAINT tally_values CHECK (
    pages BETWEEN -9007199254740992 AND 9007199254740992 AND open BETWEEN -9007199254740992 AND 9007199254740992
    AND bytes BETWEEN -9007199254740992 AND 9007199254740992
    AND cancelled BETWEEN -9007199254740992 AND 9007199254740992
    AND succeeded BETWEEN -9007199254740992 AND 9007199254740992
    AND failed BETWEEN -9007199254740992 AND 9007199254740992 AND known BETWEEN -9007199254740992 AND 9007199254740992);
-- The database went back to an earlier state, which a node noticed: no node works with it until an administrator
-- declares that it was restored. Then generation and ids begin above the highest ones that nodes remembered.
ALTER TABLE archivist.fleet ADD COLUMN went_back boolean NOT NULL DEFAULT false;
ALTER TABLE archivist.fleet ADD COLUMN known_generation bigint NOT NULL DEFAULT 0;
ALTER TABLE archivist.fleet ADD COLUMN known_crawl bigint NOT NULL DEFAULT 0;
ALTER TABLE archivist.fleet ADD COLUMN known_page bigint NOT NULL DEFAULT 0;
-- While the node remembers another generation: when it was seen before its first hello in this one.
ALTER TABLE archivist.node ADD COLUMN lost_from timestamptz;
-- Longest texts, in bytes (src/core/fleet/bounds.rs). Lists have the texts of many rows, and every node reads them.
-- Texts for display are cut, as nodes send them.
UPDATE archivist.page SET title = left(title, 1024) WHERE octet_length(title) > 4099;
UPDATE archivist.page SET reason = left(reason, 1024) WHERE octet_length(reason) > 4099;
UPDATE archivist.result SET output = left(output, 1024) WHERE octet_length(output) > 4099;
UPDATE archivist.result SET error = left(error, 1024) WHERE octet_length(error) > 4099;
ALTER TABLE archivist.fleet ADD CONSTRAINT fleet_lengths CHECK (octet_length(server) <= 200);
ALTER TABLE archivist.node ADD CONSTRAINT node_lengths CHECK (
    octet_length(name) <= 200 AND octet_length(former) <= 200 AND octet_length(machine) <= 200
    AND octet_length(boot) <= 200);
ALTER TABLE archivist.crawl ADD CONSTRAINT crawl_lengths CHECK (octet_length(document) <= 524288);
ALTER TABLE archivist.host ADD CONSTRAINT host_lengths CHECK (octet_length(key) <= 8192);
ALTER TABLE archivist.page ADD CONSTRAINT page_lengths CHECK (
    octet_length(host) <= 8192 AND octet_length(url) <= 8192 AND octet_length(url_key) <= 16
    AND octet_length(title) <= 4099 AND octet_length(bookmarked_at) <= 64 AND octet_length(tags) <= 32768
    AND octet_length(reason) <= 4099 AND octet_length(directory) <= 4096
    AND cardinality(copies) <= 100 AND coalesce(array_ndims(copies), 1) = 1);
ALTER TABLE archivist.result ADD CONSTRAINT result_state CHECK (
    state IN ('queued', 'started', 'backoff', 'succeeded', 'failed', 'skipped', 'noresults'));
ALTER TABLE archivist.result ADD CONSTRAINT result_lengths CHECK (
    octet_length(plugin) <= 255 AND octet_length(hook) <= 255
    AND octet_length(output) <= 4099 AND octet_length(error) <= 4099);
