-- Results of hooks that were skipped for a program, by the begin of their reason, which names it (`WAITS_FOR`).
CREATE INDEX result_waits ON result (substr(error, 1, instr(substr(error, 10), '''') + 10), snapshot_id)
WHERE status = 'skipped' AND attempts = 0 AND error GLOB 'program ''*';
