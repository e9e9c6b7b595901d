# TAG, Table 5: with and without sufficient factors. The data is tag-tab5.sql's.
call ARG4."/tag-bars.gp" ARG1 ARG2 ARG3 "Sufficient factor broadcasting on two GTX 1080Ti, batch 4: simulated, and as measured" "iteration time (s)" 3
