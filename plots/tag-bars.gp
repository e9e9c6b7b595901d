# Bars of TAG's comparisons: one panel per model, one bar per planner, beside it the paper's value as a diamond where it prints one.
# Called by a figure's own script with the arguments data, output, terminal, title, what bars measure, panels in a row.
# Columns of the data: panel, panel's title, seat, name, status, ours, the paper's. The spaces in names are no-break ones (U+00A0).
page_title = ARG4
set datafile separator tab
set datafile commentschars "#"
panels = 0; published = 0; titles = ""
see(list, text) = strstrt(list." ", " ".text." ") ? list : list." ".text
stats ARG1 using (panels = $1 + 1 > panels ? $1 + 1 : panels, published = published + (strcol(7) ne "NaN"), \
                  titles = see(titles, sprintf("%d:%s", $1, strcol(2))), 0) nooutput
after(list, i) = (entry = "", sum [k = 1:words(list)] \
    (strstrt(word(list, k), sprintf("%d:", i)) == 1 ? (entry = word(list, k)[strstrt(word(list, k), ":") + 1:*], 0) : 0), entry)
columns = panels < ARG6 + 0 ? panels : ARG6 + 0
rows = ceil(panels / real(columns))
page_width = 1260; page_height = 110 + 350 * rows
call "page.gp" ARG2 ARG3

# Seats dark to light by family: data parallelism, other systems, TAG, Kilter's own.
colours = "#14375e #3c6a9e #7fa9d1 #a6500f #d98a3d #1d6b45 #58b185 #8a5a9e #c9a8d6"
colour(seat) = int(word(sprintf("%d %d %d %d %d %d %d %d %d", 0x14375e, 0x3c6a9e, 0x7fa9d1, 0xa6500f, 0xd98a3d, 0x1d6b45, 0x58b185, \
    0x8a5a9e, 0xc9a8d6), int(seat) % 9 + 1))

top = 1 - 60.0 / (110 + 350 * rows)
if (published > 0) { set label 1 "diamonds: as published" at screen 0.985, screen up(top + 0.01) right font "DejaVu Sans,12" textcolor rgb "#444444" }
set style fill solid 1.0 border rgb "#222222"
set boxwidth 0.82
unset key
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
set xtics rotate by 40 right font "DejaVu Sans,10" scale 0
set lmargin 9; set rmargin 2; set tmargin 2; set bmargin 7
do for [panel = 0:panels - 1] {
    most = 0; last = 0
    stats ARG1 using ($1 == panel ? (most = strcol(5) eq "ok" && $6 > most ? $6 : most, \
                                     most = strcol(7) ne "NaN" && $7 > most ? $7 : most, 0) : 0) nooutput
    set yrange [0:(most > 0 ? 1.12 * most : 1)]
    set xrange [-0.7:*]
    set size 1.0 / columns, high(top / rows)
    set origin int(panel) % columns / real(columns), up(top - top / rows * (1 + floor(panel / columns)))
    set title after(titles, panel) font "DejaVu Sans,14" offset 0, -0.5
    set ylabel (int(panel) % columns == 0 ? ARG5 : "") offset 1, 0
    filter = sprintf("< awk -F'\\t' '!/^#/ && $1 == %d' '%s'", panel, ARG1)
    plot filter using 0:(strcol(5) eq "ok" ? $6 : NaN):(colour($3)):xtic(4) with boxes linecolor rgb variable, \
         filter using 0:(0.02 * most):(strcol(5) eq "oom" ? "out of memory" : "") with labels rotate left font "DejaVu Sans,10" textcolor rgb "#222222", \
         filter using 0:7 with points pointtype 13 pointsize 1.6 linecolor rgb "#000000", \
         filter using 0:7 with points pointtype 13 pointsize 1.0 linecolor rgb "#ffd24d"
    unset label 1
}
load "close.gp"
