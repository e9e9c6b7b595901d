# A plan: the layers of each device, their forms, its part of the work, its timeline, and the busiest links.
# Data: index 0 title, number of layers, links in words; 1 rows and names; 2 boxes (row, first layer, end, form, part);
# 3 spans (row, stream, start, end, category).
set terminal @ARG3 size 1400 * px, 900 * px font "DejaVu Sans,12" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"

forms = "#cccccc #4f86b8 #e08a2a #14375e"
form(k) = word("whole batch weights both", k)
colours = "#14375e #4f86b8 #b9dcf0 #777777 #e08a2a"
name(k) = k == 4 ? "inside machines" : word("forward backward update - communication", k)

title = system(sprintf("sed -n 2p '%s' | cut -f1", ARG1))
links = system(sprintf("sed -n 2p '%s' | cut -f3", ARG1))
layers = 1; rows = 1; end = 0.0
stats ARG1 index 0 using (layers = $2, 0) nooutput
stats ARG1 index 1 using ($1 + 1 > rows ? (rows = $1 + 1, 0) : 0) nooutput
stats ARG1 index 3 using ($4 > end ? (end = $4, 0) : 0) nooutput
end = end > 0 ? end : 1

set multiplot
set style fill solid 1.0 border rgb "white"
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set lmargin at screen 0.17
set rmargin at screen 0.98
set label 1 title at screen 0.17, 0.97 left font "DejaVu Sans,16"
set yrange [rows - 0.5:-0.5]
unset ytics
set grid xtics linetype 1 linecolor rgb "#dddddd" back

# The layers of each device: the height of a box is the device's part of the work, relative to the largest in its stage.
set origin 0.0, 0.52
set size 1.0, 0.43
set key at screen 0.98, 0.97 right horizontal reverse Left samplen 1.5 width 1
set xrange [0:layers]
set xlabel "layers; the height is the part of the work" offset 0, 0.4
plot for [k = 1:4] ARG1 index 2 \
         using ($4 == k ? ($2 + $3) / 2 : NaN):($1 + 0.42 - 0.42 * $5):2:3:($1 + 0.42 - 0.84 * $5):($1 + 0.42) \
         with boxxyerror linecolor rgb word(forms, k) notitle, \
     for [k = 1:4] NaN with boxes linecolor rgb word(forms, k) title form(k), \
     ARG1 index 1 using (0):1:2 with labels right offset -0.8, 0 notitle

# The timeline.
unset label 1
set label 2 links eq "-" ? "" : links at screen 0.17, 0.015 left font "DejaVu Sans,11" textcolor rgb "#444444"
set style fill solid 1.0 noborder
set origin 0.0, 0.03
set size 1.0, 0.46
set key at screen 0.98, 0.5 right horizontal reverse Left samplen 1.5 width 1
set xrange [0:end]
set xlabel "time (ms)" offset 0, 0.4
high(stream) = stream == 0 ? -0.4 : 0.02 + 0.2 * (stream - 1)
low(stream) = stream == 0 ? -0.02 : 0.4
plot for [k = 1:words(colours)] ARG1 index 3 \
         using ($5 == k - 1 ? ($3 + $4) / 2 : NaN):($1 + (high($2) + low($2)) / 2):3:4:($1 + high($2)):($1 + low($2)) \
         with boxxyerror linecolor rgb word(colours, k) notitle, \
     for [k = 1:words(colours)] NaN with boxes linecolor rgb word(colours, k) title name(k), \
     ARG1 index 1 using (0):1:2 with labels right offset -0.8, 0 notitle
unset multiplot
set output
