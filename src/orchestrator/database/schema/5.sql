-- What is known of the clock (`ClockState`): one row. `doubt` is 0 while it is believed, else the number of the doubt.
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    state TEXT NOT NULL DEFAULT '{"last":null,"doubt":null,"doubts":0}',
    doubt INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO clock (one) VALUES (1);
-- The number of the doubt during which the page was visited; 0 if its times can be believed.
ALTER TABLE snapshot ADD COLUMN doubt INTEGER NOT NULL DEFAULT 0;
CREATE INDEX snapshot_doubted ON snapshot (doubt) WHERE doubt > 0;
CREATE TRIGGER snapshot_doubtful AFTER UPDATE OF visited_at ON snapshot
WHEN NEW.doubt <> (SELECT doubt FROM clock) BEGIN
    UPDATE snapshot SET doubt = (SELECT doubt FROM clock) WHERE id = NEW.id;
END;
CREATE TRIGGER snapshot_added_in_doubt AFTER INSERT ON snapshot WHEN (SELECT doubt FROM clock) > 0 BEGIN
    UPDATE snapshot SET doubt = (SELECT doubt FROM clock) WHERE id = NEW.id;
END;
-- The count of the pages that Retention= deletes (`RetentionReview`). NULL: none is due.
ALTER TABLE retention ADD COLUMN review TEXT;
