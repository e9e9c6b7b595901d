# Small changes that a test should notice, one per line: file, line, kind of change, the line after the change and before it, function;
# separated by tabs.
#
#     awk -f tests/mutate/changes.awk FILE.c...
#
# Comments, preprocessor lines, asserts, declarations and strings are left alone.

function change(from, to) {
    n_changes++
    before[n_changes] = from
    after[n_changes] = to
}

BEGIN {
    change(" < ", " <= "); change(" <= ", " < "); change(" > ", " >= "); change(" >= ", " > ")
    change(" == ", " != "); change(" != ", " == "); change(" && ", " || "); change(" || ", " && ")
    change(" + ", " - "); change(" - ", " + "); change(" * ", " / "); change(" / ", " * ")
    change(" += ", " -= "); change("return true;", "return false;"); change("return false;", "return true;")
    change(" = 0;", " = 1;"); change(" + 1", ""); change(" - 1", ""); change("MIN(", "MAX("); change("MAX(", "MIN(")
    change("fmax(", "fmin("); change("fmin(", "fmax("); change("if (", "if (!"); change("++;", "--;"); change("continue;", "break;")
}

# A condition of several words cannot be negated by a mark before it.
function fits(i, rest) {
    return before[i] != "if (" || rest ~ /^if \([a-z_]+(->[a-z_]+|\.[a-z_]+)*(\([a-z_, &>.-]*\))?\)/
}

FNR == 1 { comment = 0; body = 0 }
/^[a-zA-Z].*[a-z_0-9]\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
/^\{/ { body = 1 }
/^\}/ { body = 0 }
{
    line = $0
    was = comment
    if (line ~ /\/\*/ && line !~ /\*\//) comment = 1
    else if (line ~ /\*\//) comment = 0
    if (!body || was || comment || line ~ /^[ \t]*(#|\/\*|\*)|assert|ASSERT|"|g_auto|kilter_fail|refuse|const char/) next
    for (i = 1; i <= n_changes; i++) {
        at = index(line, before[i])
        rest = substr(line, at)
        if (at && fits(i, rest))
            printf "%s\t%d\t'%s' becomes '%s'\t%s%s%s\t%s\t%s\n", FILENAME, FNR, before[i], after[i],
                substr(line, 1, at - 1), after[i], substr(line, at + length(before[i])), line, name
    }
    # A statement that is only a call is dropped.
    if (line ~ /^    +[a-z_]+\(.*\);$/ && line !~ /free|unref|clear|va_/)
        printf "%s\t%d\tdropped\t%s\t%s\t%s\n", FILENAME, FNR, "    ;", line, name
}
