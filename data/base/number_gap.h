/* Why a number within its range was not read (private to data/base). */
#pragma once

/* To follow the range in a message about a text that number_read refused: for numbers too close to
 * 0 what is; else "". */
const char *number_gap(const char *text);
