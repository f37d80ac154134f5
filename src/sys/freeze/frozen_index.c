/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/freeze/frozen_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"

static const char magic[8] = "cayfrz1\n";

/* A record is a key, the length of the path with its end, and the path. */
enum { KEY = sizeof(struct frozen_key), HEAD = KEY + sizeof(uint32_t) };

void frozen_index_done(struct frozen_index *x)
{
	buf_done(&x->records);
	free(x->slots);
	x->slots = NULL;
	x->n = x->nslots = 0;
}

int frozen_index_add(struct frozen_index *x, const char *path, const struct frozen_key *key)
{
	uint32_t n = (uint32_t)strlen(path) + 1;
	int r = buf_add(&x->records, key, sizeof *key);

	if (r == 0)
		r = buf_add(&x->records, &n, sizeof n);
	if (r == 0)
		r = buf_add(&x->records, path, n);
	x->n += r == 0;
	return r;
}

int frozen_index_write(const struct frozen_index *x, int dirfd, const char *name)
{
	auto_close int fd =
		openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : io_write_all(fd, magic, sizeof magic);

	return r < 0 ? r : io_write_all(fd, x->records.data, x->records.len);
}

static uint64_t hash_of(const char *path)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3u;
	return h ^ h >> 29;
}

/* The path of the record at this offset; *ret_next is the offset of the next record. */
static const char *record_at(const struct frozen_index *x, size_t at, size_t *ret_next)
{
	size_t left = x->records.len - at;
	const char *p = x->records.data + at;
	uint32_t n;

	if (left < HEAD)
		return NULL;
	memcpy(&n, p + KEY, sizeof n);
	if (n == 0 || n > LIMIT_PATH || n > left - HEAD || p[HEAD + n - 1] ||
	    strlen(p + HEAD) != n - 1)
		return NULL;
	*ret_next = at + HEAD + n;
	return p + HEAD;
}

static int count(struct frozen_index *x)
{
	size_t at = sizeof magic;

	if (x->records.len < at || memcmp(x->records.data, magic, at) != 0)
		return -EBADMSG;
	for (x->n = 0; at < x->records.len; x->n++)
		if (!record_at(x, at, &at))
			return -EBADMSG;
	return 0;
}

static uint32_t *slot_of(const struct frozen_index *x, const char *path)
{
	uint64_t i = hash_of(path) & (x->nslots - 1);
	size_t next;

	while (x->slots[i] && strcmp(record_at(x, x->slots[i] - 1, &next), path) != 0)
		i = (i + 1) & (x->nslots - 1);
	return &x->slots[i];
}

int frozen_index_read(struct frozen_index *x, int dirfd, const char *name)
{
	auto_close int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : frozen_index_read_fd(x, fd);
}

int frozen_index_read_fd(struct frozen_index *x, int fd)
{
	size_t at = sizeof magic, here;
	int r = io_read_all(fd, &x->records);

	if (r == 0)
		r = count(x);
	if (r < 0)
		return r;
	for (x->nslots = 64; x->nslots < 2 * x->n;)
		x->nslots *= 2;
	x->slots = calloc(x->nslots, sizeof *x->slots);
	if (!x->slots)
		return -ENOMEM;
	while (at < x->records.len) {
		const char *path = record_at(x, here = at, &at);

		*slot_of(x, path) = (uint32_t)here + 1;
	}
	return 0;
}

bool frozen_index_find(const struct frozen_index *x, const char *path, struct frozen_key *ret)
{
	uint32_t at = x->slots ? *slot_of(x, path) : 0;

	if (at)
		memcpy(ret, x->records.data + at - 1, sizeof *ret);
	return at != 0;
}

bool frozen_index_has(const struct frozen_index *x, const char *path, const struct frozen_key *key)
{
	struct frozen_key was;

	return frozen_index_find(x, path, &was) && was.nlink && was.ctime_ns == key->ctime_ns &&
	       was.dev == key->dev && was.ino == key->ino && was.size == key->size &&
	       was.mtime_ns == key->mtime_ns && was.mode == key->mode && was.uid == key->uid &&
	       was.gid == key->gid && was.nlink == key->nlink;
}
