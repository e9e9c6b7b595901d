-- HAP, Fig. 2: our side of the claims in data/paper/hap.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/hap-fig2.sql
, pair AS (
    SELECT even.hidden AS hidden, even.x AS x, even.s AS even_s, cp.s AS cp_s, (SELECT min(s) FROM point WHERE hidden = even.hidden AND mix > 0 AND mix < 1) AS best_s
    FROM point AS even JOIN point AS cp USING (hidden) WHERE even.mix = 0 AND cp.mix = 1),
low AS (SELECT * FROM pair ORDER BY x LIMIT 1),
high AS (SELECT * FROM pair ORDER BY x DESC LIMIT 1),
sweet AS (SELECT *, min(even_s, cp_s) / best_s AS gain FROM pair ORDER BY gain DESC LIMIT 1)
SELECT 'ev-low' AS claim, even_s < cp_s AS ours,
       printf('at a ratio of %.2f (hidden size %d) CP takes %.2f times as long as EV', x, hidden, cp_s / even_s) AS note,
       'the largest shard does not bound this program''s communication' AS reason
FROM low
UNION ALL
SELECT 'cp-high', cp_s < even_s, printf('at a ratio of %.2f (hidden size %d) EV takes %.2f times as long as CP', x, hidden, even_s / cp_s),
       'the slow devices do not bound this program''s computation'
FROM high
UNION ALL
SELECT 'sweet-point', gain > 1.005,
       printf('ratios in between against the better of EV and CP: %.3f times as fast at most, at a ratio of %.2f (hidden size %d)', gain, x, hidden),
       'the time is a sum of largest shares and largest loads, both linear in the ratios: for two speeds and this program it is least '
       || 'at an end, EV or CP, or level in between. An overlap (column overlap) does not change it: each op waits for what it gathers. By kernels of data sheets (column kernels) ops speed up unlike the rates, proportional ratios overload the A100, and at a hidden size of 2,560 halfway is fastest'
FROM sweet WHERE gain IS NOT NULL;
