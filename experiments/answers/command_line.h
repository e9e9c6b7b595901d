/* Commands as they are typed. */
#pragma once

/* "kilter sweep -j 2 x.yaml", shell-quoted. Caller frees. */
char *command_line(int argc, char **argv);
