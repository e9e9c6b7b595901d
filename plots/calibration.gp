# Fitted over measured costs, by bytes: ops and collectives.
# Data: collective (0 or 1), kind, bytes, measured_s, predicted_s.
set terminal @ARG3 size 1200 * px, 560 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"

stats ARG1 using 1 nooutput # without collectives, of one rank, its panel is empty
parts = STATS_max
set multiplot layout 1,2 title "Residuals of the calibration" font "DejaVu Sans,16"
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set logscale xy
set format x "10^{%L}"
set yrange [0.2:5]
set ytics ("0.2" 0.2, "0.5" 0.5, "0.8" 0.8, "1" 1, "1.25" 1.25, "2" 2, "5" 5)
set grid ytics linecolor rgb "#dddddd"
set ylabel "predicted / measured"
unset key
do for [part = 0:1] {
    set title part == 0 ? "ops" : "collectives"
    set xlabel part == 0 ? "bytes of all operands" : "bytes of the tensor"
    if (part > parts) { set xrange [1:1e6] } else { set xrange [1:*] }
    plot 1 linecolor rgb "#444444" linewidth 1, \
        ARG1 using ($1 == part ? $3 : NaN):($5 / $4) with points pointtype 7 pointsize 0.35 \
            linecolor rgb part == 0 ? "#14375e" : "#e08a2a"
}
unset multiplot
