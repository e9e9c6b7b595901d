-- The result of each panel, cluster and seat.
bar AS (
    SELECT result.*, panel, title, seat, name, max(ordinal)
    FROM result JOIN panel USING (model) JOIN seat ON seat.planner = result.planner AND seat.search = json_extract(options, '$.search')
    GROUP BY panel, cluster, seat)
