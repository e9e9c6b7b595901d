# Curves over a common axis. Called by a figure's own script with the arguments data, output, terminal, title; the script sets
# the axes before. Columns of the data: seat of the curve, its name, x, anything, y. Of seat -1 are
# marks at the paper's value: the fourth column is a claim, y what it divides.
page_width = 900; page_height = 640; page_title = ARG4
call "page.gp" ARG2 ARG3

# Seats differ in colour, in its lightness, in dashes and in marks, so that they can be told apart in grey.
colours = "#9cc7e6 #f0a63c #a6500f #14375e"
dashes = "1 2 4 1"
marks = "-1 4 8 7"
widths = "9 2.5 2.5 2.5" # the first is a band that the others lie on

seats = ""; names = ""
see(list, text) = strstrt(list."|", "|".text."|") ? list : list."|".text
published = 0
stats ARG1 using (published = published + ($1 < 0), seats = $1 < 0 ? seats : see(seats, sprintf("%d", $1)), \
                  names = $1 < 0 ? names : see(names, strcol(2)), 0) nooutput
part(list, i) = (rest = list[2:*]."|", sum [k = 1:i - 1] (rest = rest[strstrt(rest, "|") + 1:*], 0), rest[1:strstrt(rest, "|") - 1])
curves = 0
do for [i = 1:strlen(seats)] { if (seats[i:i] eq "|") { curves = curves + 1 } }

set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
set tmargin 4
plot for [k = 1:curves] ARG1 using ($1 == part(seats, k) + 0 ? $3 : NaN):5 with linespoints linewidth 0 + word(widths, part(seats, k) + 1) pointsize 1.3 \
    linecolor rgb word(colours, part(seats, k) + 1) dashtype int(word(dashes, part(seats, k) + 1)) \
    pointtype int(word(marks, part(seats, k) + 1)) title part(names, k), \
     ARG1 using ($1 < 0 ? $3 : NaN):($5 / paper(strcol(4))):($5 / paper_low(strcol(4))):($5 / paper_high(strcol(4))) with yerrorbars pointtype 13 \
         pointsize 1.7 linewidth 2 linecolor rgb "#000000" title (published > 0 ? "as the paper has it, over the same baseline" : ""), \
     ARG1 using ($1 < 0 ? $3 : NaN):($5 / paper(strcol(4))) with points pointtype 13 pointsize 1.0 linecolor rgb "#ffd24d" notitle
load "close.gp"
