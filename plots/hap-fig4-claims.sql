-- HAP, Fig. 4: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
point AS (
    SELECT json_extract(subject, '$.exchange.collective') AS kind, json_extract(subject, '$.exchange.share') AS share,
           iteration_time_s AS s
    FROM result WHERE experiment = 'hap-fig4'),
pair AS (
    SELECT padded.share AS share, padded.s AS padded_s, grouped.s AS grouped_s
    FROM point AS padded JOIN point AS grouped USING (share)
    WHERE padded.kind = 'all_gather' AND grouped.kind = 'grouped_all_gather'),
flip AS (SELECT min(share) AS share FROM pair WHERE grouped_s < padded_s),
even AS (SELECT * FROM pair ORDER BY share LIMIT 1),
skewed AS (SELECT * FROM pair ORDER BY share DESC LIMIT 1)
SELECT 'padded-even' AS claim, padded_s < grouped_s AS ours,
       printf('at a share of %.2f grouped takes %.2f times as long; grouped is faster from %.2f on', even.share, grouped_s / padded_s,
              flip.share) AS note,
       printf('the fit says %.0f us for the padded, %.0f us for the grouped one', 1e6 * padded_s, 1e6 * grouped_s) AS reason
FROM even, flip
UNION ALL
SELECT 'grouped-skewed', grouped_s < padded_s,
       printf('at a share of %.2f padded takes %.2f times as long', share, padded_s / grouped_s),
       printf('the fit says %.0f us for the padded, %.0f us for the grouped one', 1e6 * padded_s, 1e6 * grouped_s)
FROM skewed;
