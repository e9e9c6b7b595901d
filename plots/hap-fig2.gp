# HAP, Fig. 2: ratios under different computation-to-communication ratios. The data is hap-fig2.sql's.
set logscale x 2
set xlabel "computation / communication of an iteration with even ratios"
set ylabel "iteration time relative to even ratios"
set yrange [0:1.6]
set key at graph 0.98, 0.99 right top reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 \
    "Sharding ratios on 2 A100 and 2 P100 (Transformer, hidden size 80 to 5,120)"
