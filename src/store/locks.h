/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record in a lock file. An ephemeral sandbox without a name has no row in the catalog: a row
 * costs more than a millisecond, and the sandbox may live for five. Its lock file, which exists
 * anyway, holds what a row would. The record is listed only while the lock is held and the creator
 * shows it, which it does while its command runs.
 */
#pragma once

#include "base/buf.h"
#include "store/catalog.h"

enum { LOCK_RECORD_MAX = 256 * 1024 };

/* Append the record of a row. 0 or -errno. */
int lock_record_put(struct buf *b, const struct sandbox_row *row);
/*
 * Write the record into the lock file of a running sandbox that another process made (a claimed
 * one). The file stays open: *ret_fd.
 */
int lock_record_write(const struct state *s, const char *id, struct str record, int *ret_fd,
		      struct err *e);
/* List or hide the record in this lock file. A new record is hidden. */
void lock_record_show(int fd, bool shown);
/*
 * 1: the sandbox is running and its lock file shows a record. *ret is the row that it would have,
 * with `unlisted` set; the caller owns it. 0: no such record, or the sandbox is dead. -ENOMEM.
 */
int lock_record_read(int state_fd, const char *id, struct sandbox_row *ret);
/*
 * Dead sandboxes with a record, shown or hidden, among the names in locks/ after `after` (the first
 * follows the last). Checks at most `most` names; ids has room for `most`. Returns the number.
 */
int lock_records_dead(const struct state *s, const char *after, char (*ids)[ID_SIZE], int most);

/* The ids in a directory of the state, unsorted; the caller frees *ret. 0 or -errno. */
int state_list_ids(int state_fd, const char *dir, char (**ret)[ID_SIZE], size_t *ret_n);
