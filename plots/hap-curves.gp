# Curves over a common axis. Called by a figure's own script with the arguments data, output, terminal, title; the script sets
# the axes before. Columns of the data: seat of the curve, its name, x, anything, y.
set terminal @ARG3 size 900,640 font "DejaVu Sans,13" background rgb "white"
set output ARG2
set datafile separator tab
set datafile commentschars "#"

# Seats differ in colour, in its lightness, in dashes and in marks, so that they can be told apart in grey.
colours = "#9cc7e6 #f0a63c #a6500f #14375e"
dashes = "1 2 4 1"
marks = "-1 4 8 7"
widths = "9 2.5 2.5 2.5" # the first is a band that the others lie on

seats = ""; names = ""
see(list, text) = strstrt(list."|", "|".text."|") ? list : list."|".text
stats ARG1 using (seats = see(seats, sprintf("%d", $1)), names = see(names, strcol(2)), 0) nooutput
part(list, i) = (rest = list[2:*]."|", sum [k = 1:i - 1] (rest = rest[strstrt(rest, "|") + 1:*], 0), rest[1:strstrt(rest, "|") - 1])
curves = 0
do for [i = 1:strlen(seats)] { if (seats[i:i] eq "|") { curves = curves + 1 } }

set title ARG4 font "DejaVu Sans,16" offset 0, 0.4
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
set tmargin 4
plot for [k = 1:curves] ARG1 using ($1 == part(seats, k) + 0 ? $3 : NaN):5 with linespoints linewidth 0 + word(widths, part(seats, k) + 1) pointsize 1.3 \
    linecolor rgb word(colours, part(seats, k) + 1) dashtype int(word(dashes, part(seats, k) + 1)) \
    pointtype int(word(marks, part(seats, k) + 1)) title part(names, k)
set output
