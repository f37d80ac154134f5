/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar streams: POSIX ustar and pax; the reader also accepts GNU long names. Pure: bytes in, entries
 * out.
 *
 * The reader takes whatever bytes have arrived. It holds one header block and at most LIMIT_PAX of
 * extended header. It is strict where implementations differ, because an archive that two programs
 * read differently can pass a check. Links and directories carry no data, global headers may not
 * name or size an entry, sparse files are refused, and the end marker is required. The reader
 * returns paths as they are in the stream: tar_path_clean() checks them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"

enum { TAR_BLOCK = 512, TAR_WHY = 64 };

enum tar_type { TAR_FILE, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK };

struct tar_entry {
	enum tar_type type;
	uint32_t mode;	  /* permission bits, 07777 */
	const char *path; /* not empty */
	const char *link; /* target; not empty for links, else "" */
	uint64_t size;	  /* of the data that follows; 0 for anything but a file */
	uint64_t uid, gid;
	int64_t mtime_s;
	uint32_t mtime_ns;
	struct str records; /* further pax records, as tar_put_record() makes them */
};

enum tar_event {
	TAR_MORE,      /* all input is used */
	TAR_ENTRY,     /* r->entry begins; valid until its TAR_ENTRY_END */
	TAR_DATA,      /* *ret_data is the next part of its data */
	TAR_ENTRY_END, /* the data is complete */
	TAR_END,       /* the end marker; the rest of the input is ignored */
};

enum tar_state { TAR_S_HEADER, TAR_S_EXT, TAR_S_DATA, TAR_S_PAD, TAR_S_ZERO, TAR_S_END, TAR_S_BAD };

struct tar_reader {
	enum tar_state state;
	unsigned has;	    /* fields from an extended header: bits, see tar.c */
	size_t have;	    /* bytes in block */
	uint64_t left, pad; /* bytes left of the data or extended header, and of the padding */
	char ext_type;
	struct buf ext;	    /* the extended header being received */
	struct buf records; /* pax records of the next or current entry */
	struct tar_entry entry, over;
	unsigned char block[TAR_BLOCK];
	char path[LIMIT_PATH], link[LIMIT_PATH];
	char why[TAR_WHY]; /* after an error: the reason, such as "is a fifo"; about entry.path if
			      set */
};

void tar_reader_init(struct tar_reader *r);
void tar_reader_done(struct tar_reader *r);
DEFINE_AUTO(struct tar_reader, tar_reader_done)

/*
 * Use bytes from the front of *in. Returns an enum tar_event; -EBADMSG for malformed input,
 * -EOPNOTSUPP for unsupported entries, -E2BIG or -ENOMEM. After an error the reader is unusable.
 */
int tar_read(struct tar_reader *r, struct str *in, struct str *ret_data);

/*
 * Turn an entry's name or a hard link's target into a plain relative path: without "." and empty
 * components, and "" for the root itself. -EBADMSG, with the reason in *ret_why, for absolute
 * paths, "..", components above 255 bytes and more than LIMIT_TREE_DEPTH components.
 */
int tar_path_clean(const char *path, char out[LIMIT_PATH], const char **ret_why);

/* Take the next user.* attribute from records (the name starts with "user."). */
bool tar_xattr_next(struct str *records, struct str *ret_name, struct str *ret_value);
/* Attributes that belong to the content: user.*, except those that overlayfs obeys. */
bool tar_xattr_ok(struct str name);

/*
 * Append to out; all return 0, -E2BIG or -ENOMEM. After the header come the data and
 * tar_put_pad(size).
 */
int tar_put_header(struct buf *out, const struct tar_entry *e);
int tar_put_pad(struct buf *out, uint64_t size);
int tar_put_end(struct buf *out);
int tar_put_record(struct buf *out, const char *key, struct str value);
int tar_put_xattr(struct buf *out, const char *name, struct str value);
