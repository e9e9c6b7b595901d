# TAG, Fig. 5: seconds per iteration on the testbed. The data is tag-fig5.sql's.
call ARG4."/tag-bars.gp" ARG1 ARG2 ARG3 "Time of a training iteration on TAG's testbed, simulated" "iteration time (s)" 3
