# One kernel over a range of one extent: on the roofline of its device, and its part of it.
# Data: extent, FLOP per byte, FLOP/s, B/s, seconds, part of the roof, peak, bandwidth, what limits it.
set terminal @ARG3 size 1200 * px, 520 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"
stats ARG1 using 7 nooutput
peak = STATS_max
stats ARG1 using 8 nooutput
band = STATS_max
stats ARG1 using 3 nooutput
computes = STATS_max > 0
stats ARG1 using 2 nooutput
low = computes ? STATS_min : 1
high = computes ? STATS_max : 1
set multiplot layout 1,2 title "One kernel over a range" font "DejaVu Sans,16"
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linecolor rgb "#dddddd"
set key below reverse Left
set bmargin 7.5
set logscale xy
set format "10^{%L}"
if (computes) {
    set title "roofline of the data sheet"
    set xlabel "FLOP for each byte of operands and result" offset 0, 0.4
    set ylabel "TFLOP/s"
    set xrange [low / 2 : high * 2]
    roof(x) = (band * x < peak ? band * x : peak) / 1e12
    plot roof(x) with lines linewidth 1 dashtype 2 linecolor rgb "#444444" title "peak and bandwidth", \
         ARG1 using 2:($3 / 1e12) with linespoints pointtype 7 pointsize 0.3 linewidth 2 linecolor rgb "#14375e" title "the kernel"
} else {
    set title "bandwidth of the data sheet"
    set xlabel "extent" offset 0, 0.4
    set ylabel "GB/s"
    plot band / 1e9 with lines linewidth 1 dashtype 2 linecolor rgb "#444444" title "bandwidth", \
         ARG1 using 1:($4 / 1e9) with lines linewidth 2 linecolor rgb "#14375e" title "the kernel"
}
set title "time, and the least that the data sheet allows"
set xrange [*:*]
set xlabel "extent" offset 0, 0.4
set ylabel "milliseconds"
plot ARG1 using 1:($5 * 1e3) with lines linewidth 2 linecolor rgb "#14375e" title "the kernel", \
     ARG1 using 1:($5 * $6 * 1e3) with lines linewidth 1 dashtype 2 linecolor rgb "#444444" title "by the data sheet"
unset multiplot
