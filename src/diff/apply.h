/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking changes of a sandbox over into a directory of the host, all or nothing.
 *
 *   plan     the difference becomes a list of steps; what may not be taken over is refused
 *   stage    every new file is written below DIR/.cay-apply, and synced
 *   journal  the steps are written there, and the journal's hash into the state directory; from
 *            now on the work can be finished or undone
 *   commit   each step is one rename (or mkdir, rmdir, chmod), so it is done or not done, and
 *            which of both can be told from the inodes: no step is ever marked as done
 *   clean    the journal goes first, then the rest
 *
 * A replaced file is exchanged with the staged one, so that the old one is looked at after it
 * can no longer change under us; where it is not the one that was planned for, everything is
 * undone. Parents are opened beneath DIR without following a symbolic link.
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
	APPLY_REPLACE = 'r', /* in the journal 'R' where it is a merge */
	APPLY_CHMOD = 'm',
};

/* What a file of the host looked like. */
struct apply_file {
	uint64_t ino, size, mtime_ns;
	uint32_t mode, uid, gid;
};

struct apply_step {
	enum apply_op op;
	char *path;	       /* below the directory */
	struct apply_file old; /* ino 0: there was none */
	uint64_t new_ino;      /* of the staged file */
	uint32_t mode;	       /* permission bits to have */
	size_t entry;	       /* of the difference; not in the journal */
	bool merged;	       /* the staged file holds the merge of both */
	bool conflict;	       /* and that has conflict markers */
	bool git_index;	       /* must still pass guard_index_ok() when it is staged */
	/* of what the sandbox had then; not in the journal */
	uint8_t theirs[SHA256_SIZE];
};

enum apply_why {
	APPLY_HOST_CHANGED, /* the host's file changed since the sandbox saw it */
	APPLY_HOST_DELETED, /* it was deleted there */
	APPLY_HOST_CREATED, /* there was none */
	APPLY_SPECIAL,	    /* device, socket, fifo */
	APPLY_OTHER_FS,	    /* lies on another file system than the directory */
	APPLY_UNREADABLE,
	APPLY_BINARY,	/* the host's file changed, and a merge was wanted but is no text */
	APPLY_RENAMING, /* lies in a directory in which init keeps what is half renamed */
	/* Left out, not refused (guard.h). The first three are taken with git_config. */
	APPLY_GUARDED,	  /* could make git run something */
	APPLY_GIT_BARE,	  /* a part of a bare repository that the host does not have yet */
	APPLY_OTHER_TOOL, /* the same of .hg, .jj and their like */
	APPLY_GIT_LINK,	  /* a link that git would write through */
	APPLY_GIT_INDEX,  /* an index that names files of .git */
	APPLY_OWN,	  /* .cay-apply */
	APPLY_BELOW,	  /* of a directory that became a file which is left out */
	APPLY_NOT_EMPTY,  /* holds what is left out */
};

/* Something that is not taken over. */
struct apply_issue {
	char *path;
	enum apply_why why;
};

struct apply {
	int dir_fd;	  /* the directory; borrowed */
	int state_fd;	  /* the state directory, which knows our journals; borrowed */
	int stage_fd;	  /* DIR/.cay-apply, or FD_NONE */
	char id[32];	  /* of the sandbox */
	char nonce[33];	  /* of the journal: apply_note.c; "": it has none yet */
	bool has_journal; /* found there, of a run that was cut off */
	struct apply_step *steps;
	size_t n, cap;
	struct apply_issue *refused, *left_out;
	size_t nrefused, nleft_out;
	/* All is as it was, with other ctimes; before the journal goes. NULL: nobody cares. */
	int (*undone)(void *ctx, const struct apply *a, struct err *e);
	void *undone_ctx;
	/* For tests: called before each durable step. */
	void (*before)(void *ctx, int step);
	void *ctx;
	int count;
};

/* What the host's files looked like to the sandbox, and what may be overridden. */
struct apply_rules {
	uint64_t base_ns; /* files that changed later are not what the sandbox saw */
	bool frozen;	  /* what it saw was copied: no file of it is one of the host's */
	bool elsewhere;	  /* the directory is another than the one that the sandbox saw */
	bool git_config;  /* take over what may make git and its like run something, too */
	/* True for a host's file (of this path, inode, ctime and size) that we wrote before. */
	bool (*is_ours)(void *ctx, const char *path, uint64_t ino, uint64_t ctime_ns,
			uint64_t size);
	/* What we did last to a path: 1 wrote it, -1 removed it, 0 nothing. */
	int (*was_ours)(void *ctx, const char *path);
	/* True where the last that we wrote to a path was a merge: the host's own is in it too. */
	bool (*was_merged)(void *ctx, const char *path);
	bool renewed; /* we wrote before: files are no longer those that were copied up */
	/*
	 * Content at the time when the sandbox first changed the file, or of the sandbox's when it
	 * was taken over last: 1, 0: not known.
	 */
	int (*base)(void *ctx, const char *path, struct buf *ret);
	void *ctx;
	bool merge;
};

void apply_init(struct apply *a, int dir_fd, int state_fd, const char *id);
void apply_done(struct apply *a);
DEFINE_AUTO(struct apply, apply_done)

/* Steps and issues from the difference d (old: what the sandbox saw). Writes nothing. */
int apply_plan(struct apply *a, const struct diff *d, const struct apply_rules *rules,
	       struct err *e);
const char *apply_why_text(enum apply_why why);
/* Left out only because struct apply_rules does not say git_config. */
static inline bool apply_why_is_config(enum apply_why why)
{
	return why == APPLY_GUARDED || why == APPLY_GIT_BARE || why == APPLY_OTHER_TOOL;
}

/*
 * Take DIR/.cay-apply, where an earlier run may have left something. CONFLICT where another one
 * is at work. Without a journal what is there is removed; else has_journal, and steps and id
 * are those of that run. NOT_ALLOWED for a journal that the state directory does not know.
 */
int apply_lock(struct apply *a, struct err *e);
/* Stage, write the journal, commit, clean. On failure all is undone, where that is possible. */
int apply_run(struct apply *a, const struct diff *d, const struct apply_rules *rules,
	      struct err *e);
/* Finish or undo what apply_lock() found. */
int apply_resume(struct apply *a, struct err *e);
int apply_undo(struct apply *a, struct err *e);

/* Between the files of apply_*.c. */
int apply_add_step(struct apply *a, const struct apply_step *s, const char *path);
int apply_stage(struct apply *a, const struct diff *d, const struct apply_rules *rules,
		struct err *e);
int apply_journal_write(struct apply *a, struct err *e);
/* Its text, and back: 0, or -EBADMSG for what we would not write. */
int apply_journal_put(const struct apply *a, struct buf *b);
int apply_journal_parse(struct apply *a, struct str body);
int apply_nonce_new(struct apply *a);
/* False where the text is no nonce. */
bool apply_nonce_take(struct apply *a, const char *text);
/* 0 or -errno. */
int apply_note_write(const struct apply *a, struct str journal);
bool apply_note_check(const struct apply *a, struct str journal);
void apply_note_drop(const struct apply *a);
/* 1: read, 0: there is none. */
int apply_journal_read(struct apply *a, struct err *e);
void apply_stage_name(char out[40], char kind, size_t i);
/* The directory that holds path, and in *ret_name its last component. -errno. */
int apply_parent(const struct apply *a, const char *path, const char **ret_name);
int apply_look(int dirfd, const char *name, struct apply_file *ret);
void apply_tick(struct apply *a);
