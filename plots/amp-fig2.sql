-- AMP, Fig. 2: one row per candidate. Columns: setting, its title, rank by prediction, seconds simulated, rank of these, Spearman's
-- correlation of the two ranks in the setting, the predicted rank of the paper's best (Sec. 4.5: 3rd, 2nd and 1st).
WITH
.read shared/amp-fig2.sql
spearman AS (SELECT panel, 1 - 6.0 * sum((x - place) * (x - place)) / (max(n) * (max(n) * max(n) - 1.0)) AS rho FROM ranked GROUP BY panel)
SELECT panel, title, rank, s, place, rho, 3 - panel AS published_rank FROM ranked JOIN spearman USING (panel) ORDER BY panel, rank;
