-- HiDup, Table 5: our side of the claims in data/paper/hidup.csv. Columns: claim, ours, note, reason (shown if it does not hold).
WITH
.read shared/hidup-tab5.sql
claim (claim, noise, communication, reason) AS (
    VALUES ('random-20', 0.2, 0, 'the search leans on differences that are smaller than the noise; it does, too, as in its artifact with a serial backward (column serial), and with half of the noise (column fifth)'),
           ('random-50', 0.5, 0, 'programs that look alike cost alike here: none found is far from the best, nor in a search with a serial backward (column serial); with noise of 80 % (column fifth) it holds'),
           ('more-20', 0, 0.2, 'the search changes the program where communication seems longer'),
           ('more-50', 0, 0.5, 'the search changes the program where communication seems longer'),
           ('less-20', 0, -0.2, 'the search changes the program where communication seems shorter'),
           ('less-50', 0, -0.5, 'the program changes, but what it sends more is still hidden; believed to take a fifth (column fifth) it costs more than in the paper'))
SELECT claim, ratio, printf('mean of %d draws, worst %.3f', n, worst), reason
FROM claim JOIN mean USING (noise, communication);
