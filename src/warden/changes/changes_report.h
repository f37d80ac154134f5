/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turn the differences of a walk into events.
 *
 * Differences are collected first, because a rename is two of them: a deleted name and a new name
 * of the same inode. The same inode means the same number, birth time and type; birth time, because
 * file systems reuse a freed number at once. A file of the lower leaves a new whiteout instead: it
 * matches if the lower file has the size, mtime and mode of the new file. An entry that moved along
 * with its directory gets no event. changes_moved.h has the rules for directories of a lower layer.
 *
 * The events of one walk describe one step from the state at the last walk to the state now.
 * `from`, and `path` of a delete, are names in the old state; every other `path` is a name in the
 * new state. A rename does not mention a file that it overwrote. A rename itself changes the ctime,
 * so with equal size and mtime nothing is known about the content. An entry that moves along with
 * its directory keeps its ctime, and a new ctime is an event.
 *
 * At most LIMIT_WALK_EVENTS differences are kept. Events of kind trace.gap count the others, per
 * call.
 */
#pragma once

#include "base/buf.h"
#include "warden/changes/changes.h"
#include "warden/changes/changes_index.h"

enum { CHANGES_NONE = UINT32_MAX };

enum changes_kind {
	CHANGES_GONE,	    /* it was in the upper */
	CHANGES_GONE_LOWER, /* it was only in the lower */
	CHANGES_NEW,	    /* an inode that was not at this path before */
	CHANGES_CHANGED,    /* the same inode as before */
};

enum {
	CHANGES_EXISTED = 1,   /* NEW: the lower has an entry of the same type there */
	CHANGES_MODE_ONLY = 2, /* NEW and EXISTED, or CHANGED: size and mtime are unchanged */
	CHANGES_TOUCHED = 4,   /* the same, and the mode is unchanged too */
	/* NEW, moved along from the lower with the same size and mtime, and with equal content */
	CHANGES_SAME = 8,
	CHANGES_OTHER = 16,
};

/* A directory that contains differences, to build their paths. */
struct changes_dir {
	uint32_t up; /* CHANGES_NONE: the root of an upper */
	uint32_t name, name_len;
	uint32_t gone, new; /* the differences for the directory itself, or CHANGES_NONE */
	uint32_t root;
};

struct changes_diff {
	uint64_t ino, btime_ns, ctime_ns, mtime_ns, size;
	uint64_t time_ns; /* ctime; for a deleted name: ctime of its directory */
	uint32_t mode;
	uint32_t dir, name;
	uint32_t match; /* NEW: the difference it came from; GONE: the difference it became */
	uint32_t pair;	/* GONE and NEW with the same path and type */
	uint32_t next;	/* next with the same hash */
	uint16_t name_len;
	uint8_t kind, flags;
};

struct changes_report {
	const struct changes_root *roots;
	const struct changes_call *calls;
	uint32_t ncalls;
	uint64_t since_ns; /* when the walk before this one began */
	struct changes_diff *diffs;
	uint32_t ndiffs, cap_diffs;
	struct changes_dir *dirs;
	uint32_t ndirs, cap_dirs;
	struct buf text;
	uint64_t *gaps; /* per call; the last counts differences without a certain call */
	/* While walking: later changes may belong to calls that are not listed; 0: no such time. */
	uint64_t known_ns;
};

int changes_report_init(struct changes_report *p, const struct changes_root *roots,
			const struct changes_call *calls, uint32_t ncalls);
void changes_report_done(struct changes_report *p);
DEFINE_AUTO(struct changes_report, changes_report_done)

/* *ret: a number for the directory; CHANGES_NONE beyond a ceiling. 0 or -ENOMEM. */
int changes_report_dir(struct changes_report *p, uint32_t up, uint32_t root, struct str name,
		       uint32_t *ret);
/* *ret: a number for the difference; CHANGES_NONE if it was only counted. 0 or -ENOMEM. */
int changes_report_add(struct changes_report *p, enum changes_kind kind, uint32_t dir,
		       struct str name, const struct changes_rec *rec, uint64_t time_ns,
		       uint32_t *ret);
/* Find the renames. 0 or -ENOMEM. */
int changes_report_match(struct changes_report *p);
/* True if the difference moved along with its directory. */
bool changes_report_is_implied(const struct changes_report *p, const struct changes_diff *d);

/* Count a difference without an event. */
void changes_report_skip(struct changes_report *p, uint64_t time_ns, bool gone);

/* Writes the events of a report, some at a time (changes_emit.c). */
struct changes_emitter;
int changes_emitter_new(struct changes_report *p, uint64_t unlisted, struct changes_emitter **ret);
void changes_emitter_free(struct changes_emitter *m);
DEFINE_AUTO_PTR(struct changes_emitter, changes_emitter_free)
/* Process up to `most` differences. 1: there are more; 0: that was the last; -1: failed. */
int changes_emitter_some(struct changes_emitter *m, const struct changes_sink *to, uint32_t most,
			 struct err *e);
