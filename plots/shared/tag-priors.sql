-- The searches of Table 7 and Fig. 8, in the order of the legend.
way (seat, planner, search, priors, name) AS (
    VALUES (4, 'heterog', 'own', 'uniform', 'HeteroG''s space'), (1, 'tag', 'mcts', 'uniform', 'MCTS, uniform'),
           (5, 'tag', 'mcts', 'gnn', 'MCTS, network'), (7, 'tag', 'mcts', 'ahead', 'MCTS, ahead'), (6, 'tag', 'own', 'uniform', 'Kilter''s search')),
run AS (
    SELECT result.*, panel, title, seat, name, json_extract(detail, '$.search.tries') AS tries,
           json_extract(detail, '$.search.tries_to_beat_dp') AS beaten, max(ordinal)
    FROM result JOIN panel USING (model)
         JOIN way ON way.planner = result.planner AND way.search = json_extract(options, '$.search')
                 AND way.priors = coalesce(json_extract(options, '$.priors'), 'uniform')
    WHERE status = 'ok' GROUP BY experiment, panel, cluster, seat)
