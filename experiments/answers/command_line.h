/* Commands as they are typed. */
#ifndef KILTER_EXPERIMENTS_ANSWERS_COMMAND_LINE_H
#define KILTER_EXPERIMENTS_ANSWERS_COMMAND_LINE_H

/* "kilter sweep -j 2 x.yaml", shell-quoted. Caller frees. */
char *command_line(int argc, char **argv);

#endif
