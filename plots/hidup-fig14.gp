# HiDup, Fig. 14: search time by number of layers. The data is hidup-fig14.sql's.
set logscale y 10
set format y "%g"
set xlabel "layers"
set ylabel "time to find the strategy (s, wall clock)"
set xtics (2, 4, 6, 8, 12, 16, 20, 24)
set xrange [1:25]
set key at graph 0.98, 0.70 right top reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 \
    "Strategy search for BERT-SGMoE"
