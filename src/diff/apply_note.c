/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells which journals are ours. A journal is in a directory that others can write: it may have
 * come with a clone or an archive, and undoing it moves files. So the state directory keeps a note
 * of each journal, applying/NONCE, with the hash of the whole journal. The note is written before
 * the journal and removed after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "base/random.h"
#include "diff/apply.h"

#define NOTES "applying"

static void note_path(const struct apply *a, char out[64])
{
	(void)snprintf(out, 64, NOTES "/%s", a->nonce);
}

int apply_nonce_new(struct apply *a)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[(sizeof a->nonce - 1) / 2];
	int r = random_bytes(bytes, sizeof bytes);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof bytes; i++) {
		a->nonce[2 * i] = digits[bytes[i] >> 4];
		a->nonce[2 * i + 1] = digits[bytes[i] & 15];
	}
	a->nonce[2 * sizeof bytes] = '\0';
	return 0;
}

bool apply_nonce_take(struct apply *a, const char *text)
{
	return strspn(text, "0123456789abcdef") == sizeof a->nonce - 1 &&
	       str_copy(a->nonce, sizeof a->nonce, str_of(text));
}

int apply_note_write(const struct apply *a, struct str journal)
{
	auto_close int fd = FD_NONE, dir = FD_NONE;
	uint8_t hash[SHA256_SIZE];
	char path[64];
	int r = io_mkdir(a->state_fd, NOTES, 0700);

	if (r < 0)
		return r;
	sha256(journal.p, journal.n, hash);
	note_path(a, path);
	dir = openat(a->state_fd, NOTES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = openat(a->state_fd, path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (dir < 0 || fd < 0)
		return -errno;
	r = io_write_all(fd, hash, sizeof hash);
	if (r == 0 && (fsync(fd) < 0 || fsync(dir) < 0))
		r = -errno;
	failpoint("apply.noted");
	return r;
}

bool apply_note_check(const struct apply *a, struct str journal)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * SHA256_SIZE);
	uint8_t hash[SHA256_SIZE];
	char path[64];

	note_path(a, path);
	sha256(journal.p, journal.n, hash);
	return a->state_fd >= 0 && io_read_file(a->state_fd, path, &b) == 0 &&
	       b.len == sizeof hash && memcmp(b.data, hash, sizeof hash) == 0;
}

void apply_note_drop(const struct apply *a)
{
	char path[64];

	if (!a->nonce[0])
		return;
	note_path(a, path);
	(void)unlinkat(a->state_fd, path, 0);
}
