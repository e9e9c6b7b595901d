# Prints a source with a mark before each statement that a change of ORDER is in (tests/mutate/reach.h), at the head of its line.
#
#     awk -f tests/mutate/reach.awk -v order=ORDER -v file=FILE -v bytes=BYTES -v header=HEADER [-v coarse=1] FILE
#
# BYTES is the file that the marks write, HEADER is reach.h. ORDER has a change per line: number, file, line, ... A statement begins after the end of another one, or after a brace. Where that is not
# seen, or if coarse, the mark is at the head of the function: the tests that reach it include those that reach the line.
BEGIN {
    FS = "\t"
    while ((getline < order) > 0)
        if ($2 == file) { n_ids++; id[n_ids] = $1; at[n_ids] = $3 }
    comment = 0
}

function begins(text, before) {
    if (text ~ /^[ \t]*(else|case|default|[{}&|?:+*\/,.)-]|$)/ || text ~ /^[a-z]/)
        return 0
    if (before ~ /;$/)
        return gsub(/\(/, "(", before) == gsub(/\)/, ")", before)
    return before ~ /(\)|else|do) \{$/ || before ~ /^[ \t]*\}$/ || before ~ /^[ \t]*(case [A-Za-z_0-9]*|default):$/
}

{
    line[NR] = $0
    start[NR] = !coarse && begins($0, last)
    if ($0 == "{") head = NR + 1
    heads[NR] = head
    if ($0 !~ /^[ \t]*$/ && $0 !~ /^[ \t]*(\/\*|\*)/ && $0 !~ /\*\/$/) last = $0
}

END {
    for (i = 1; i <= n_ids; i++) {
        p = at[i]
        while (p > heads[at[i]] && !start[p]) p--
        mark[p] = mark[p] "KILTER_REACHED(" id[i] "); "
    }
    print "#define KILTER_REACHED_FILE \"" bytes "\""
    print "#include \"" header "\""
    for (i = 1; i <= NR; i++) print mark[i] line[i]
}
