/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies changes of a sandbox to a host directory, all or nothing.
 *
 *   plan     turn the difference into a list of steps; refuse changes that must not be applied
 *   stage    write every new file below DIR/.cay-apply, and sync it
 *   journal  write the steps there, and the journal's hash into the state directory; from now on
 *            the run can be finished or undone
 *   commit   each step is one rename (or mkdir, rmdir, chmod), so it is done or not done. The
 *            inodes show which: no step is ever marked as done
 *   clean    remove the journal first, then the rest
 *
 * A replaced file is exchanged with the staged file. So we check the old file after it can no
 * longer change. If it is not the planned one, everything is undone. Parents are opened beneath DIR
 * without following a symbolic link.
 */
#pragma once

#include "base/sha256.h"
#include "diff/compare.h"

#define APPLY_DIR ".cay-apply"

enum apply_op {
	APPLY_DELETE = 'x', /* in this order; deeper ones first */
	APPLY_RMDIR = 'z',
	APPLY_MKDIR = 'd',
	APPLY_ADD = 'a',
	APPLY_REPLACE = 'r', /* 'R' in the journal if it is a merge */
	APPLY_CHMOD = 'm',
};

/* The recorded state of a host file. */
struct apply_file {
	uint64_t ino, size, mtime_ns;
	uint32_t mode, uid, gid;
};

struct apply_step {
	enum apply_op op;
	char *path;	       /* relative to the directory */
	struct apply_file old; /* ino 0: no file existed */
	uint64_t new_ino;      /* of the staged file */
	uint32_t mode;	       /* permission bits to set */
	size_t entry;	       /* index in the difference; not in the journal */
	bool merged;	       /* the staged file is a merge of both sides */
	bool conflict;	       /* the merge has conflict markers */
	bool git_index;	       /* must still pass guard_index_ok() when staged */
	/* hash of the sandbox's file at that time; not in the journal */
	uint8_t theirs[SHA256_SIZE];
};

enum apply_why {
	APPLY_HOST_CHANGED, /* the host file changed since the sandbox saw it */
	APPLY_HOST_DELETED, /* the host deleted the file */
	APPLY_HOST_CREATED, /* the host created the file */
	APPLY_SPECIAL,	    /* device, socket, fifo */
	APPLY_OTHER_FS,	    /* on another file system than the directory */
	APPLY_UNREADABLE,
	APPLY_BINARY,	/* the host file changed, and a merge was requested but it is not text */
	APPLY_RENAMING, /* in a directory where init keeps half-renamed entries */
	/* Left out, not refused (guard.h). git_config includes the first three. */
	APPLY_GUARDED,	  /* could make git run a command */
	APPLY_GIT_BARE,	  /* part of a bare repository that the host does not have yet */
	APPLY_OTHER_TOOL, /* the same for .hg, .jj and similar */
	APPLY_GIT_LINK,	  /* a link that git would write through */
	APPLY_GIT_INDEX,  /* an index that names files of .git */
	APPLY_OWN,	  /* .cay-apply */
	APPLY_BELOW,	  /* below a directory that became a file, which is left out */
	APPLY_NOT_EMPTY,  /* contains entries that are left out */
};

/* A change that is not applied. */
struct apply_issue {
	char *path;
	enum apply_why why;
};

struct apply {
	int dir_fd;	  /* the directory; borrowed */
	int state_fd;	  /* the state directory, which records our journals; borrowed */
	int stage_fd;	  /* DIR/.cay-apply, or FD_NONE */
	char id[32];	  /* of the sandbox */
	char nonce[33];	  /* identifies the journal (apply_note.c); "": none yet */
	bool has_journal; /* found from an interrupted run */
	struct apply_step *steps;
	size_t n, cap;
	struct apply_issue *refused, *left_out;
	size_t nrefused, nleft_out;
	/*
	 * Called when everything is undone (only ctimes differ), before the journal is removed. May
	 * be NULL.
	 */
	int (*undone)(void *ctx, const struct apply *a, struct err *e);
	void *undone_ctx;
	/* For tests: called before each durable step. */
	void (*before)(void *ctx, int step);
	void *ctx;
	int count;
};

/* How the sandbox saw the host's files, and what may be overridden. */
struct apply_rules {
	uint64_t base_ns; /* the sandbox did not see files that changed after this time */
	bool frozen;	  /* the sandbox saw a copy: none of its files is a host file */
	bool elsewhere;	  /* not the directory that the sandbox saw */
	bool git_config;  /* also apply what may make git or similar tools run a command */
	/*
	 * True for a host file (of this path, inode, ctime and size) that cay apply wrote before.
	 */
	bool (*is_ours)(void *ctx, const char *path, uint64_t ino, uint64_t ctime_ns,
			uint64_t size);
	/* Our last action on a path: 1 wrote it, -1 removed it, 0 none. */
	int (*was_ours)(void *ctx, const char *path);
	/* True if our last write to a path was a merge, which also contains host changes. */
	bool (*was_merged)(void *ctx, const char *path);
	bool renewed; /* we wrote before: files are no longer the ones copied up */
	/*
	 * The content when the sandbox first changed the file, or the sandbox's content when it was
	 * last applied. 1, or 0 if unknown.
	 */
	int (*base)(void *ctx, const char *path, struct buf *ret);
	void *ctx;
	bool merge;
};

void apply_init(struct apply *a, int dir_fd, int state_fd, const char *id);
void apply_done(struct apply *a);
DEFINE_AUTO(struct apply, apply_done)

/* Computes steps and issues from the difference d (old: what the sandbox saw). Writes nothing. */
int apply_plan(struct apply *a, const struct diff *d, const struct apply_rules *rules,
	       struct err *e);
const char *apply_why_text(enum apply_why why);
/* True if it is left out only because struct apply_rules lacks git_config. */
static inline bool apply_why_is_config(enum apply_why why)
{
	return why == APPLY_GUARDED || why == APPLY_GIT_BARE || why == APPLY_OTHER_TOOL;
}

/*
 * Lock DIR/.cay-apply, which an earlier run may have left. CONFLICT if another run is active.
 * Without a journal, leftovers are removed. With one, has_journal is set, and steps and id are
 * those of that run. NOT_ALLOWED for a journal that the state directory does not know.
 */
int apply_lock(struct apply *a, struct err *e);
/* Stage, write the journal, commit, clean. On failure undoes everything, if possible. */
int apply_run(struct apply *a, const struct diff *d, const struct apply_rules *rules,
	      struct err *e);
/* Finish or undo the run that apply_lock() found. */
int apply_resume(struct apply *a, struct err *e);
int apply_undo(struct apply *a, struct err *e);

/* Shared between the files apply_*.c. */
int apply_add_step(struct apply *a, const struct apply_step *s, const char *path);
int apply_stage(struct apply *a, const struct diff *d, const struct apply_rules *rules,
		struct err *e);
int apply_journal_write(struct apply *a, struct err *e);
/* Writes the journal's text, and parses it: 0, or -EBADMSG for a text that we would not write. */
int apply_journal_put(const struct apply *a, struct buf *b);
int apply_journal_parse(struct apply *a, struct str body);
int apply_nonce_new(struct apply *a);
/* False if the text is not a nonce. */
bool apply_nonce_take(struct apply *a, const char *text);
/* 0 or -errno. */
int apply_note_write(const struct apply *a, struct str journal);
bool apply_note_check(const struct apply *a, struct str journal);
void apply_note_drop(const struct apply *a);
/* 1: read; 0: there is none. */
int apply_journal_read(struct apply *a, struct err *e);
void apply_stage_name(char out[40], char kind, size_t i);
/* Opens the directory that contains path; *ret_name is the last component. Or -errno. */
int apply_parent(const struct apply *a, const char *path, const char **ret_name);
int apply_look(int dirfd, const char *name, struct apply_file *ret);
void apply_tick(struct apply *a);
