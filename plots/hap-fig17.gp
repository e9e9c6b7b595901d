# HAP, Fig. 17: uneven placement of experts. The data is hap-fig17.sql's.
set xlabel "experts of an MoE layer (tokens in proportion)"
set ylabel "iteration time (s)"
set xtics 1
set xrange [3.7:12.3]
set yrange [0:*]
set key right bottom reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 "BERT-MoE on 2 A100 and 2 P100 by number of experts (simulated)"
