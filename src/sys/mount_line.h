/* SPDX-License-Identifier: Apache-2.0 */
/* One line of /proc/PID/mountinfo. */
#pragma once

#include <stdbool.h>

/* Texts lie in the line that was cut. */
struct mount_line {
	const char *id, *options, *type;
	const char *root, *point; /* unescaped */
	const char *propagation;  /* the first optional field; NULL: none, it is private */
};

/* Cut a line up in place. False where it is none. */
bool mount_line_cut(char *line, struct mount_line *ret);

/* In place: the kernel writes space, tab, newline and backslash as \ooo. */
void mount_line_unescape(char *s);
