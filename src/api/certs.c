/* SPDX-License-Identifier: Apache-2.0 */
#include "api/certs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "http/tls.h"

/* Others may not read a private key; a group may (Debian's ssl-cert). */
enum { OPEN_TO_OTHERS = 0027 };

static struct certs_stamp stamp_of(const struct stat *st)
{
	return (struct certs_stamp){ st->st_dev, st->st_ino, st->st_size, st->st_mtim };
}

static bool stamp_eq(const struct certs_stamp *a, const struct certs_stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec;
}

static struct certs_stamp stamp_now(const char *path)
{
	const struct certs_stamp none = { 0 };
	struct stat st;

	return stat(path, &st) < 0 ? none : stamp_of(&st);
}

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

DEFINE_AUTO(struct buf, wipe)

static int read_pem(const char *path, bool is_key, struct buf *ret, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is not a regular file", path);
	if (is_key && st.st_mode & OPEN_TO_OTHERS) {
		(void)err_set(e, ERR_INVALID,
			      "other users can use the private key '%s' (mode %04o)", path,
			      (unsigned)st.st_mode & 07777);
		return err_hint(e, "run: chmod 600 %s", path);
	}
	r = io_read_all(fd, ret);
	if (r == -E2BIG)
		return err_set(e, ERR_INVALID, "'%s' is larger than %d bytes", path, CERTS_MOST);
	return r < 0 ? err_sys(e, -r, "read '%s'", path) : 0;
}

static int check(const struct certs *c, struct str chain, struct str key, struct err *e)
{
	const struct http_tls_cert cert = { chain, key };
	const struct http_tls_options o = { .certs = &cert, .n = 1 };
	struct http_tls *t = NULL;

	if (http_tls_new(&t, &o, e) < 0)
		return err_ctx(e, "'%s' with '%s'", c->cert_path, c->key_path);
	http_tls_free(t);
	return 0;
}

int certs_load(struct certs *c, struct err *e)
{
	auto_done(wipe) struct buf chain = BUF_INIT(CERTS_MOST), key = BUF_INIT(CERTS_MOST);

	c->stamps[0] = stamp_now(c->cert_path);
	c->stamps[1] = stamp_now(c->key_path);
	if (read_pem(c->cert_path, false, &chain, e) < 0 ||
	    read_pem(c->key_path, true, &key, e) < 0 ||
	    check(c, buf_str(&chain), buf_str(&key), e) < 0)
		return -1;
	certs_done(c);
	c->chain = chain;
	c->key = key;
	chain = key = (struct buf)BUF_INIT(CERTS_MOST);
	return 0;
}

bool certs_changed(const struct certs *c)
{
	const struct certs_stamp now[] = { stamp_now(c->cert_path), stamp_now(c->key_path) };

	return !stamp_eq(&now[0], &c->stamps[0]) || !stamp_eq(&now[1], &c->stamps[1]);
}

bool certs_cover(const struct certs *c, const char *name)
{
	return http_tls_names(buf_str(&c->chain), name);
}

void certs_done(struct certs *c)
{
	wipe(&c->chain);
	wipe(&c->key);
}
