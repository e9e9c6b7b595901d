# Days of training over the interval between checkpoints: goodput, and where the rest of the time goes.
# Data: interval_s, goodput, low, high, lost, save, down, slow, expected; parts of the time, the middle row at the interval that was used.
set terminal @ARG3 size 1200 * px, 520 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"
stats ARG1 using 1 nooutput
middle = (STATS_records - 1) / 2
stats ARG1 every ::middle::middle using 1 nooutput
used = STATS_min
set multiplot layout 1,2 title "Days of training, by the interval between checkpoints" font "DejaVu Sans,16"
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linecolor rgb "#dddddd"
set logscale x
set format x "%g"
set xlabel "minutes of work between checkpoints" offset 0, 0.4
set arrow 1 from used / 60, graph 0 to used / 60, graph 1 nohead front dashtype 2 linecolor rgb "#888888"
set key below reverse Left
set bmargin 7.5
set title "goodput (dashed line: the interval used)"
set ylabel "useful work, as a share of the time"
plot ARG1 using ($1 / 60):3:4 with filledcurves fillcolor rgb "#cfdcec" title "5 to 95 % of the runs", \
     ARG1 using ($1 / 60):9 with lines linewidth 2 dashtype 2 linecolor rgb "#c8660a" title "Daly 2006: exponential, with spares", \
     ARG1 using ($1 / 60):2 with lines linewidth 2 linecolor rgb "#14375e" title "mean"
set title "where the other time goes"
set ylabel "share of the time"
set yrange [0:*]
set style fill solid 1.0 noborder
plot ARG1 using ($1 / 60):($5 + $6 + $7 + $8) with filledcurves x1 fillcolor rgb "#b8b8b8" title "slowed", \
     ARG1 using ($1 / 60):($5 + $6 + $7) with filledcurves x1 fillcolor rgb "#7fa9d1" title "restarts and waiting", \
     ARG1 using ($1 / 60):($5 + $6) with filledcurves x1 fillcolor rgb "#1d6b45" title "saving", \
     ARG1 using ($1 / 60):5 with filledcurves x1 fillcolor rgb "#d98a3d" title "lost work"
unset multiplot
