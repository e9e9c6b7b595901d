# Planners by how much slower they are than the fastest plan of each meeting, logarithmic: mean, and a line to the worst; the gap to the
# bound as a circle. Data: place, planner, mean regret, worst regret, mean gap, in percent.
set terminal @ARG3 noenhanced size 1000 * px, 640 * px font "DejaVu Sans,13" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"
most = 1.05
stats ARG1 using 1 nooutput
rows = STATS_max + 1
stats ARG1 using (worst = 1 + ($4 > $5 ? $4 : $5 > 0 ? $5 : $4) / 100, most = worst > most ? worst : most, 0) nooutput
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set lmargin at screen 0.26
set rmargin at screen 0.96
set bmargin at screen 0.18
set tmargin at screen 0.86
set yrange [rows - 0.4:-0.6]
set logscale x
set xrange [1:most * 1.1]
unset ytics
set xtics ()
do for [e = 0:ceil(log10(most * 1.1))] { do for [m in (most > 200 ? "1" : most > 8 ? "1 2 5" : "1 1.1 1.2 1.5 2 3 5")] { set xtics add (sprintf("%g", 10.0 ** e * m) 10.0 ** e * m) } }
set grid xtics linetype 1 linecolor rgb "#dddddd" back
set xlabel "time over that of the fastest plan, logarithmic (1: the fastest)"
set label 1 "Planners by regret" at screen 0.04, 0.95 left font "DejaVu Sans,16"
set key at screen 0.96, 0.99 right top vertical reverse Left samplen 2
set style fill solid 1.0 noborder
times(x) = 1 + x / 100
short(s) = strlen(s) > 28 ? s[1:27]."…" : s
plot ARG1 using (sqrt(times($3))):1:(1):(times($3) > 1.002 ? times($3) : 1.002):($1 - 0.3):($1 + 0.3) with boxxyerror linecolor rgb "#4f86b8" title "mean", \
     ARG1 using (times($3)):1:(times($4) - times($3)):(0) with vectors nohead linewidth 2 linecolor rgb "#14375e" title "to the worst", \
     ARG1 using (times($5)):1 with points pointtype 6 pointsize 1.4 linewidth 2 linecolor rgb "#e08a2a" title "mean over the bound", \
     ARG1 using (1):1:(short(strcol(2))) with labels right offset -1, 0 font "DejaVu Sans,12" notitle
set output
