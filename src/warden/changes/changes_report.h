/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the differences that a walk finds to events.
 *
 * Differences are gathered first, because a rename is two of them: a name that is gone and a
 * new one of the same inode (number, birth time and type; birth time, because file systems
 * hand out a freed number at once), or, for a file that was in the lower, a new whiteout
 * whose lower file has the size, mtime and mode of the new one. What moved along with a
 * directory above it is no event of its own. changes_moved.h has the rules for directories of a
 * lower layer.
 *
 * The events of one walk describe one step from the state at the last walk to the state now:
 * `from` is a name in the first, `path` of a delete as well, every other `path` is one in the
 * second. A rename says nothing about what it may have overwritten. It moves ctime itself, so
 * that nothing can be said of the content where size and mtime are as before; what moves
 * along with its directory keeps its ctime, and a new one is an event.
 *
 * At most LIMIT_WALK_EVENTS differences are kept. Those beyond are counted, per call, in
 * events of kind trace.gap.
 */
#pragma once

#include "base/buf.h"
#include "warden/changes/changes.h"
#include "warden/changes/changes_index.h"

enum { CHANGES_NONE = UINT32_MAX };

enum changes_kind {
	CHANGES_GONE,	    /* was in the upper */
	CHANGES_GONE_LOWER, /* was in the lower only */
	CHANGES_NEW,	    /* an inode that was not at this path */
	CHANGES_CHANGED,    /* the same inode as before */
};

enum {
	CHANGES_EXISTED = 1,   /* NEW: the lower has something of this type there */
	CHANGES_MODE_ONLY = 2, /* NEW and EXISTED, or CHANGED: size and mtime are as they were */
	CHANGES_TOUCHED = 4,   /* the same, and the mode as well */
	/* NEW, moved along from the lower with the same size and mtime: its content was compared */
	CHANGES_SAME = 8,
	CHANGES_OTHER = 16,
};

/* A directory that holds differences, to spell their paths. */
struct changes_dir {
	uint32_t up; /* CHANGES_NONE: the root of an upper */
	uint32_t name, name_len;
	uint32_t gone, new; /* the differences that the directory itself is, or CHANGES_NONE */
	uint32_t root;
};

struct changes_diff {
	uint64_t ino, btime_ns, ctime_ns, mtime_ns, size;
	uint64_t time_ns; /* ctime; of a name that is gone: that of the directory it was in */
	uint32_t mode;
	uint32_t dir, name;
	uint32_t match; /* NEW: the one it came from; GONE: the one it went to */
	uint32_t pair;	/* GONE and NEW at the same path and of the same type */
	uint32_t next;	/* with the same hash */
	uint16_t name_len;
	uint8_t kind, flags;
};

struct changes_report {
	const struct changes_root *roots;
	const struct changes_call *calls;
	uint32_t ncalls;
	struct changes_diff *diffs;
	uint32_t ndiffs, cap_diffs;
	struct changes_dir *dirs;
	uint32_t ndirs, cap_dirs;
	struct buf text;
	uint64_t *gaps; /* per call, and last: of no certain call */
};

int changes_report_init(struct changes_report *p, const struct changes_root *roots,
			const struct changes_call *calls, uint32_t ncalls);
void changes_report_done(struct changes_report *p);
DEFINE_AUTO(struct changes_report, changes_report_done)

/* A number for the directory, *ret; CHANGES_NONE where a ceiling is passed. 0 or -ENOMEM. */
int changes_report_dir(struct changes_report *p, uint32_t up, uint32_t root, struct str name,
		       uint32_t *ret);
/* A number for the difference, *ret; CHANGES_NONE where it was only counted. 0 or -ENOMEM. */
int changes_report_add(struct changes_report *p, enum changes_kind kind, uint32_t dir,
		       struct str name, const struct changes_rec *rec, uint64_t time_ns,
		       uint32_t *ret);
/* Find the renames. 0 or -ENOMEM. */
int changes_report_match(struct changes_report *p);
/* True where the difference came along with a directory that was moved. */
bool changes_report_is_implied(const struct changes_report *p, const struct changes_diff *d);

/* What is to be said, and where (changes_emit.c). */
struct changes_sink {
	struct trace *trace;
	uint64_t (*parent_of)(void *ctx, uint32_t call);
	void *ctx;
};

/* Count a difference that has no event. */
void changes_report_skip(struct changes_report *p, uint64_t time_ns, bool gone);
int changes_report_emit(struct changes_report *p, const struct changes_sink *to, uint64_t unlisted,
			struct err *e);
