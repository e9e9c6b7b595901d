# HAP, Fig. 4: padded all-gather and grouped broadcasts. The data is hap-fig4.sql's.
set xlabel "share of the first GPU; the others share the rest alike"
set ylabel "bandwidth: full tensor / time (GB/s)"
set xrange [0.22:1.03]
set xtics (0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
set yrange [0:*]
set key right top reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 "All-gather of 4 MB among 2 machines of 2 A100 (cost model)"
