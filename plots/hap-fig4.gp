# HAP, Fig. 4: padded all-gather and grouped broadcasts. The data is hap-fig4.sql's.
set xlabel "share of the first GPU; the others share the rest alike"
set ylabel "bandwidth: full tensor / time (GB/s)"
set xrange [0.22:1.03]
set xtics (0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
set yrange [0:*]
set key right top reverse Left spacing 1.2
set datafile separator tab
set datafile commentschars "#"
# Where padded all-gather, which falls with the share, comes down to the broadcasts.
stats ARG1 using ($1 == 2 ? $5 : NaN) nooutput name "BROADCASTS"
level = BROADCASTS_mean; before_x = NaN; before_y = NaN; crossing = NaN
pass(x, y) = (crossing = before_y > level && y <= level ? before_x + (x - before_x) * (before_y - level) / (before_y - y) : crossing, before_x = x, \
              before_y = y, y)
stats ARG1 using ($1 == 3 ? pass($3, $5) : NaN) nooutput
if (crossing == crossing) {
    set arrow 1 from crossing, 0 to crossing, level nohead dashtype 3 linewidth 1.5 linecolor rgb "#444444"
    set label 9 sprintf("equal at %.2f", crossing) at crossing, 0.3 * level offset 0.8, 0 textcolor rgb "#222222"
}
call ARG4."/hap-curves.gp" ARG1 ARG2 ARG3 "All-gather of 4 MB among 2 machines of 2 A100 (cost model)"
