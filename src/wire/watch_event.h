/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operation CALL_WATCH writes to stdout: texts that each end with a zero byte. Per event
 * its kind, its name below the watched directory, and "1" with the texts of a file_entry behind it,
 * or "0". The text is hostile: it comes from inside.
 */
#pragma once

#include <stdbool.h>

#include "wire/file_entry.h"

enum watch_kind {
	WATCH_READY = 's', /* the first one: changes from now on are told */
	WATCH_CREATE = 'c',
	WATCH_WRITE = 'w',
	WATCH_REMOVE = 'r',
	WATCH_RENAME = 'n',
	WATCH_CHMOD = 'm',
	WATCH_SYNC = 'y', /* answers one byte of stdin: all before it was told */
};

/* Texts are views of the input. */
struct watch_event {
	enum watch_kind kind;
	struct str name;
	bool has_entry;
	struct file_entry entry;
};

/* Takes the next event. 1 and *ret, 0 for more input, or -EBADMSG. */
int watch_event_next(struct str *rest, struct watch_event *ret);
