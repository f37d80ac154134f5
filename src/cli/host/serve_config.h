/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the options of cay serve, one "name = value" per line. Names are those of the
 * options; a line that begins with '#' is a comment. Options of the command line win.
 */
#pragma once

#include <time.h>

#include "cli/cmd.h"

enum { SERVE_OPTIONS = 32 };

struct serve_config {
	const char *path;	  /* borrowed; of messages */
	const struct opt *opts;	  /* ended by a row without a name */
	int lines[SERVE_OPTIONS]; /* of each option that the file has set; 0: it has not */
	char *text;		  /* values point into it */
	struct timespec mtime;	  /* when it was written, as read */
};

/* Reads c->path into the rows of opts that have no value. An error names the line. */
int serve_config_load(struct serve_config *c, const struct opt *opts, struct err *e);
/* The same from memory; text is changed and must outlive the options. */
int serve_config_parse(struct serve_config *c, char *text, struct err *e);
/* True if the file was written again since it was read. */
bool serve_config_changed(const struct serve_config *c);
/* Put FILE:LINE in front of an error about this option, if the file has set it. Returns -1. */
int serve_config_blame(const struct serve_config *c, const void *value, struct err *e);
