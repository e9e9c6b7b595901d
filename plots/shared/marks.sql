-- Marks of the paper's claims on bars, after `bar` with panel, place and seat and `marked`: claim, its panels, its places, the seats
-- that it compares seat 0 with. A mark stands where seat 0 is farthest from the fastest of them, base is that one's time: the
-- paper has base / claim.
versus AS (
    SELECT claim, own.panel AS panel, own.place AS place, own.iteration_time_s AS s,
           (SELECT min(rival.iteration_time_s) FROM bar AS rival
            WHERE rival.panel = own.panel AND rival.place = own.place AND rival.status = 'ok' AND
                  rival.seat BETWEEN first_rival AND last_rival) AS base
    FROM marked JOIN bar AS own ON own.panel BETWEEN first_panel AND last_panel AND own.place BETWEEN least AND most
    WHERE own.seat = 0 AND own.status = 'ok'),
mark AS (SELECT claim, panel, place, base, max(max(base / s, s / base)) FROM versus WHERE base IS NOT NULL GROUP BY claim)
