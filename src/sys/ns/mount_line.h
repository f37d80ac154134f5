/* SPDX-License-Identifier: Apache-2.0 */
/* One line of /proc/PID/mountinfo. */
#pragma once

#include <stdbool.h>

/* All texts point into the parsed line. */
struct mount_line {
	const char *id, *options, *type;
	const char *root, *point; /* unescaped */
	const char *propagation;  /* the first optional field; NULL: the mount is private */
};

/* Split a line in place. False if it is malformed. */
bool mount_line_cut(char *line, struct mount_line *ret);

/* Unescape in place: the kernel writes space, tab, newline and backslash as \ooo. */
void mount_line_unescape(char *s);
