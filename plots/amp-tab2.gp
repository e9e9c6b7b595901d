# AMP, Table 2: optimization time by cluster size. The data is amp-tab2.sql's.
set logscale xy
set format y "%g"
set xlabel "GPUs"
set ylabel "time to find the strategy (s, wall clock)"
set xtics (4, 16, 64, 256)
set xrange [3:340]
set yrange [0.0005:10000]
set key at graph 0.02, 0.98 left top reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 \
    "AMP's search for GPT-2 with 24 layers"
