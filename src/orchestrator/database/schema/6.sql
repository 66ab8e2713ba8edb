-- Pages whose replay does not hold (`REPLAY_HOLDS`).
CREATE INDEX result_unfaithful ON result (owner)
WHERE plugin = 'verify' AND status = 'succeeded' AND figures ->> 'fidelity' < 0.95;
