-- Results whose files lack parts of their page (`LACKING`).
UPDATE result SET figures = json_set(coalesce(figures, '{}'), '$.lacks', 1)
WHERE status = 'succeeded' AND (
    (plugin = 'wacz' AND (error GLOB '*not recorded as a whole: *' OR error GLOB '*the recording was cut off with the tab*'))
    OR (plugin IN ('screenshot', 'pdf') AND (error GLOB '*cut at [0-9]*' OR error GLOB '*no font for *' OR error GLOB '*the PDF has [0-9]*'))
    OR (plugin = 'wget' AND (error GLOB '*files of the page * missing*' OR error GLOB '*the answer ended early*'))
    OR (plugin = 'text' AND (error GLOB '*the text of a PDF in the page is missing*' OR error GLOB '*only the first * are kept*')));
CREATE INDEX result_lacks ON result (crawl_id, snapshot_id)
WHERE status = 'succeeded' AND figures ->> 'lacks' > 0;
