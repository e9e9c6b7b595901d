# Draws the table of bench_growth:
#
#     gnuplot -d -e "table='out/growth.csv'; picture='docs/growth.svg'" tests/bench/growth.gp
set terminal svg size 1000, 420 font "DejaVu Sans,12" background "#ffffff"
set output picture
set datafile separator comma
set datafile missing NaN # lines go on over the rows of other series
set logscale xy
set multiplot layout 1, 2
set key below
set grid linecolor rgb "#dddddd"
set xlabel "GPUs, layers or microbatches"
set format x "10^{%T}"
rows(series, command, column) = (strcol(1) eq series && strcol(2) eq command ? column : NaN)
set ylabel "processor time in s"
set title "Time of a command"
plot for [series in "ranks layers microbatches"] table using (rows(series, "simulate", $3)):4 skip 1 with linespoints pointtype 7 title "simulate, ".series, \
     for [series in "ranks layers microbatches"] table using (rows(series, "plan", $3)):4 skip 1 with linespoints dashtype 2 pointtype 6 title "plan, ".series
set ylabel "most memory in MB"
set title "Memory of a command"
plot for [series in "ranks layers microbatches"] table using (rows(series, "simulate", $3)):($5 / 1e6) skip 1 with linespoints pointtype 7 notitle, \
     for [series in "ranks layers microbatches"] table using (rows(series, "plan", $3)):($5 / 1e6) skip 1 with linespoints dashtype 2 pointtype 6 notitle
unset multiplot
