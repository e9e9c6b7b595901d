# Grouped bars of HAP's comparisons: one panel per model, one group per number of GPUs, one bar per planner.
# Called by a figure's own script with the arguments data, output, terminal, title and, if groups are not numbers of GPUs, the names of
# groups and of what bars measure.
# Columns of the data: panel, panel's title, group, GPUs, planner's seat, its name, its slot, slots, status, seconds, claim, base. The
# spaces in names are no-break ones (U+00A0). A bar with a claim has a mark at the paper's value: base / claim, or the claim itself
# where there is no base; of the claim called published, base.
# A script may set `note`, a remark below the title; `axis_low`, where the axis begins; `whole_ticks`.
set datafile separator tab
set datafile commentschars "#"
panels = 0
stats ARG1 using (panels = $1 + 1 > panels ? $1 + 1 : panels, 0) nooutput
page_width = panels > 1 ? 1200 : 900; page_height = panels > 1 ? 860 : 600; page_title = ARG4
call "page.gp" ARG2 ARG3

# Seats: HAP, DP-EV, DP-CP, DeepSpeed, TAG. Dark to light, so that the order survives greyscale printing; blue against orange,
# which colour-blind readers can tell apart. Bars stand in the order of the seats, and a planner without results takes no room.
colours = "#14375e #a6500f #f0a63c #b9dcf0 #ffffff"
colour(seat) = word(colours, seat + 1)

groups = 0; slots = 1; misfits = 0; marks = 0; seats = ""; names = ""
group_names = ""; panel_titles = ""
see(list, text) = strstrt(list." ", " ".text." ") ? list : list." ".text
stats ARG1 using (groups = $3 + 1 > groups ? $3 + 1 : groups, slots = $8, \
                  misfits = misfits + (strcol(9) eq "oom"), marks = marks + (strcol(11) eq "published" || paper(strcol(11)) == paper(strcol(11))), \
                  seats = see(seats, sprintf("%d", $5)), names = see(names, strcol(6)), \
                  group_names = see(group_names, sprintf("%d:%s", $3, strcol(4))), \
                  panel_titles = see(panel_titles, sprintf("%d:%s", $1, strcol(2))), 0) nooutput
after(list, i) = (entry = "", sum [k = 1:words(list)] \
    (strstrt(word(list, k), sprintf("%d:", i)) == 1 ? (entry = word(list, k)[strstrt(word(list, k), ":") + 1:*], 0) : 0), entry)

# gnuplot drops a point if its expression reads the number NaN, but not if it reads the text NaN.
direct(claim) = claim eq "published"
as_published(value, claim, base) = direct(claim) ? 0 + base : (base eq "NaN" ? value : (0 + base) / value)
highest(claim, base) = direct(claim) ? 0 + base : base eq "NaN" ? paper_high(claim) : (0 + base) / paper_low(claim)

width = 0.84 / slots
place(group, slot) = group + (slot - (slots - 1) / 2.0) * width

set style fill solid 1.0 border rgb "#222222"
set boxwidth width * 0.94

# The legend: a separate strip above the panels.
area = 1 - 104.0 / page_height # the panels', below title, remarks and legend
set origin 0.0, up(area)
set size 1.0, high(50.0 / page_height)
set key center center horizontal reverse Left samplen 2.5 width 2 font "DejaVu Sans,14"
unset border; unset tics
said = (words(seats) == 1 ? names[2:*].(marks + misfits > 0 ? ";  " : "") : "").(marks > 0 ? "diamonds: as the paper has it" : "").(marks > 0 && misfits > 0 ? ";  " : "").(misfits > 0 ? "OOM: out of memory" : "")
if (exists("note")) { said = said.(strlen(said) > 0 ? ";  " : "").note }
set label 1 said at screen 0.5, screen 1 - 46.0 / whole_height center font "DejaVu Sans,11" textcolor rgb "#444444"
if (words(seats) > 1) {
    plot [0:1] [0:1] for [k = 1:words(seats)] NaN with boxes linecolor rgb colour(word(seats, k) + 0) title word(names, k)
} else { plot [0:1] [0:1] NaN notitle }

unset label 1
set border 3 linecolor rgb "#444444"
set tics nomirror out textcolor rgb "#222222"
set grid ytics linetype 1 linecolor rgb "#dddddd" back
unset key
set xrange [-0.6:groups - 0.4]
set xtics 1
unset xtics
longest = 0
do for [i = 0:groups - 1] { longest = strlen(after(group_names, i)) > longest ? strlen(after(group_names, i)) : longest }
do for [i = 0:groups - 1] { set xtics add (after(group_names, i) i) }
if (longest * groups > (panels > 1 ? 44 : 80)) { set xtics font "DejaVu Sans,10" }
set xtics scale 0
set ytics nomirror
if (exists("whole_ticks")) { set ytics 1 }
set xlabel (ARGC > 4 ? ARG5 : "GPUs") offset 0, 0.4
set ylabel (ARGC > 5 ? ARG6 : "iteration time (s)")
set lmargin 11; set rmargin 2; set tmargin 2; set bmargin 3

columns = panels > 1 ? 2 : 1
rows = ceil(panels / real(columns))
do for [panel = 0:panels - 1] {
    top = 0.0
    stats ARG1 using ($1 == panel && strcol(9) eq "ok" ? (top = $10 > top ? $10 : top, 0) : 0) nooutput
    stats ARG1 using ($1 == panel && highest(strcol(11), strcol(12)) > top ? (top = highest(strcol(11), strcol(12)), 0) : 0) nooutput
    low = exists("axis_low") ? axis_low : 0
    set yrange [low:(top > low ? top + 0.1 * (top - low) : low + 1)]
    set size 1.0 / columns, high(area / rows)
    set origin int(panel) % columns / real(columns), up(area - area / rows * (1 + floor(panel / columns)))
    set title (panels > 1 ? after(panel_titles, panel) : "") font "DejaVu Sans,15" offset 0, -0.4
    plot for [k = 1:words(seats)] ARG1 \
             using ($1 == panel && $5 == word(seats, k) + 0 && strcol(9) eq "ok" ? place($3, $7) : NaN):10 \
             with boxes linecolor rgb colour(word(seats, k) + 0), \
         ARG1 using ($1 == panel && strcol(9) eq "ok" && strcol(11) eq "NaN" && $10 >= 0 && $10 < 0.12 * top ? place($3, $7) : NaN):($10 + 0.02 * top):(sprintf("%.3g", $10)) \
             with labels rotate left font "DejaVu Sans,9" textcolor rgb "#222222", \
         ARG1 using ($1 == panel && strcol(9) eq "oom" ? place($3, $7) : NaN):(0.02 * top):("OOM") \
             with labels rotate left font "DejaVu Sans,12" textcolor rgb "#222222", \
         ARG1 using ($1 == panel ? place($3, $7) : NaN):(as_published(paper(strcol(11)), strcol(11), strcol(12))):(as_published(paper_low(strcol(11)), strcol(11), strcol(12))): \
             (as_published(paper_high(strcol(11)), strcol(11), strcol(12))) with yerrorbars pointtype 13 pointsize 1.7 linewidth 2 linecolor rgb "#000000", \
         ARG1 using ($1 == panel ? place($3, $7) : NaN):(as_published(paper(strcol(11)), strcol(11), strcol(12))) with points pointtype 13 pointsize 1.0 linecolor rgb "#ffd24d"
}
load "close.gp"
