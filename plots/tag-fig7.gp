# TAG, Fig. 7: loss with and without runtime feedback. The data is tag-fig7.sql's.
set xlabel "epochs"
set ylabel "mean cross entropy"
set xrange [0:25]
set yrange [0:*]
set key right bottom reverse Left spacing 1.2
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 "TAG's network by epoch: lessons learnt and held out"
