# TAG, Table 7: iterations until data parallelism is beaten. The data is tag-tab7.sql's.
call ARG4."/tag-bars.gp" ARG1 ARG2 ARG3 "Strategies tried until one is faster than data parallelism, mean of 98 unseen topologies" "tries, at most 800" 5
