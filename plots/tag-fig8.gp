# TAG, Fig. 8: time of searches. The data is tag-fig8.sql's.
call ARG4."/tag-bars.gp" ARG1 ARG2 ARG3 "Time of the search on TAG's testbed" "seconds" 3
