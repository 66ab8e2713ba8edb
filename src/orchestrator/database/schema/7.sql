-- Pages with a recording since they ended last: those that wait for a replay of it, and what the replay showed. Pages
-- that are not in the share (VerifyReplay=) have no row once they were looked at.
CREATE TABLE verification (
    snapshot_id INTEGER PRIMARY KEY,
    host_id INTEGER NOT NULL,
    -- 1 until a replay was compared, or could not be.
    open INTEGER NOT NULL DEFAULT 1 CHECK (open IN (0, 1)),
    -- The run of the unit that replays it.
    run_id INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- JSON object of what the replay showed, or why there was none.
    figures TEXT,
    problem TEXT
) STRICT;
CREATE INDEX verification_open ON verification (snapshot_id) WHERE open = 1;
CREATE INDEX verification_host ON verification (host_id) WHERE open = 0;
CREATE INDEX verification_run ON verification (run_id) WHERE run_id IS NOT NULL;
-- Those whose replay does not hold (`REPLAY_HOLDS`).
CREATE INDEX verification_unfaithful ON verification (snapshot_id) WHERE figures ->> 'fidelity' < 0.95;
CREATE TRIGGER verification_due AFTER UPDATE OF status ON snapshot
WHEN NEW.status = 'sealed' AND OLD.status <> 'sealed' AND EXISTS (
    SELECT 1 FROM result WHERE owner = 's' || NEW.id AND plugin = 'wacz' AND status = 'succeeded'
) AND NOT EXISTS (
    SELECT 1 FROM result WHERE owner = 's' || NEW.id AND plugin = 'verify' AND status = 'succeeded'
) BEGIN
    INSERT INTO verification (snapshot_id, host_id) VALUES (NEW.id, NEW.host_id)
        ON CONFLICT DO UPDATE SET open = 1, run_id = NULL, attempts = 0, figures = NULL, problem = NULL;
END;
-- The hook verify did it while the page was archived.
CREATE TRIGGER verification_by_hook AFTER UPDATE OF status ON result
WHEN NEW.plugin = 'verify' AND NEW.status = 'succeeded' AND NEW.snapshot_id IS NOT NULL BEGIN
    INSERT INTO verification (snapshot_id, host_id, open, figures)
        SELECT id, host_id, 0, NEW.figures FROM snapshot WHERE id = NEW.snapshot_id
        ON CONFLICT DO UPDATE SET open = 0, run_id = NULL, figures = excluded.figures, problem = NULL;
END;
CREATE TRIGGER verification_forgotten AFTER DELETE ON snapshot BEGIN
    DELETE FROM verification WHERE snapshot_id = OLD.id;
END;
INSERT INTO verification (snapshot_id, host_id, open, figures)
    SELECT snapshot.id, host_id, 0, figures FROM result JOIN snapshot ON snapshot.id = snapshot_id
    WHERE plugin = 'verify' AND result.status = 'succeeded' GROUP BY snapshot.id;
DROP INDEX result_unfaithful;
