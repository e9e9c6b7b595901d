# What devices compute and communicate when, those that do the same in one row, and the memory of the fullest one.
# Data: index 0 rows (number, name, remark), 1 spans (row, stream, start, end, category), 2 memory over time, 3 the device that it is of.
set terminal @ARG3 noenhanced size 1400 * px, 860 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"

# Forward, backward, update, inside a machine, between devices: dark to light, blue against orange.
colours = "#14375e #4f86b8 #b9dcf0 #777777 #e08a2a"
name(k) = k == 4 ? "inside machines" : word("forward backward update - communication", k)

devices = 1; end = 0.0; memory = 0.0
stats ARG1 index 0 using ($1 + 1 > devices ? (devices = $1 + 1, 0) : 0) nooutput
stats ARG1 index 1 using ($4 > end ? (end = $4, 0) : 0) nooutput
stats ARG1 index 2 using ($2 > memory ? (memory = $2, 0) : 0) nooutput
end = end > 0 ? end : 1
bottom = memory > 0 ? 0.26 : 0.0

set multiplot
set style fill solid 1.0 noborder
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set lmargin at screen 0.20
set rmargin at screen 0.98
set xrange [0:end]

# A long name loses the end of the machine's, not the type and the number of devices that are alike.
tail(s) = strstrt(s, " (") > 0 ? s[strstrt(s, " ("):strlen(s)] : ""
short(s) = strlen(s) <= 33 ? s : strlen(tail(s)) < 30 ? s[1:32 - strlen(tail(s))]."…".tail(s) : s[1:32]."…"
owner = ""
stats ARG1 index 3 using (owner = strcol(1), 0) nooutput
# The legend.
set label 1 "What devices do when" at screen 0.04, 0.965 left font "DejaVu Sans,16"
set key at screen 0.98, 0.93 right horizontal reverse Left samplen 1.5 width 1

# Device j has a band of height 1, its computation above its communication; later streams stand lower.
set size 1.0, 0.91 - bottom
set origin 0.0, bottom
set yrange [devices - 0.5:-0.5]
set ytics scale 0
set ytics ()
set grid xtics linetype 1 linecolor rgb "#dddddd" back
set xlabel "time (ms)" offset 0, 0.4
high(stream) = stream == 0 ? -0.4 : 0.02 + 0.2 * (stream - 1)
low(stream) = stream == 0 ? -0.02 : 0.4
plot for [k = 1:words(colours)] ARG1 index 1 \
         using ($5 == k - 1 ? ($3 + $4) / 2 : NaN):($1 + (high($2) + low($2)) / 2):3:4:($1 + high($2)):($1 + low($2)):ytic("") \
         with boxxyerror linecolor rgb word(colours, k) notitle, \
     for [k = 1:words(colours)] NaN with boxes linecolor rgb word(colours, k) \
         title name(k), \
     ARG1 index 0 using (0):1:(short(strcol(2))) with labels right offset -0.8, 0.35 font "DejaVu Sans,11" notitle, \
     ARG1 index 0 using (0):1:3 with labels right offset -0.8, -0.55 font "DejaVu Sans,9" textcolor rgb "#555555" notitle

if (memory > 0) {
    unset label 1
    unset key
    set size 1.0, bottom
    set origin 0.0, 0.0
    set yrange [0:memory * 1.1]
    set tmargin 2
    set ytics auto scale 1
    set ytics nomirror
    set ylabel "GiB" offset 1, 0
    set label 2 "Memory of ".short(owner).", the fullest device" at graph 0, 1.08 left font "DejaVu Sans,11"
    set arrow 1 from graph 0, first memory to graph 1, first memory nohead dashtype 3 linecolor rgb "#888888"
    plot ARG1 index 2 using 1:2 with fillsteps linecolor rgb "#b9dcf0", \
         ARG1 index 2 using 1:2 with steps linecolor rgb "#14375e" linewidth 1.5
}
unset multiplot
set output
