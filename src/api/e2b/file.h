/* SPDX-License-Identifier: Apache-2.0 */
/* What reading and writing files share. */
#pragma once

#include "api/e2b/envd.h"

/* The line that a file operation inside ends with where it fails: hostile text, cut. */
struct file_complaint {
	char text[1024];
	size_t n;
};

void file_complaint_add(struct file_complaint *c, struct str data);
/* The user and path of the query. False: there is no path, or it is malformed. */
bool file_query(struct envd *v, char path[ENVD_PATH]);
/* Answer with the status that fits. */
void file_refuse(struct envd *v, const char *path, const struct file_complaint *c,
		 const struct err *why);
