/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on one connection. OpenSSL reads and writes through a BIO that never raises SIGPIPE. */
#include "http/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http/tls_ctx.h"

struct tls_filter {
	struct http_filter f; /* first */
	SSL *ssl;
	bool shaken, broken;
};

static struct tls_filter *of(struct http_filter *f)
{
	return container_of(f, struct tls_filter, f);
}

/* --- BIO --- */

static int bio_write(BIO *b, const char *p, int n)
{
	int r = (int)send((int)(intptr_t)BIO_get_data(b), p, (size_t)n,
			  MSG_DONTWAIT | MSG_NOSIGNAL);

	BIO_clear_retry_flags(b);
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	return r;
}

static int bio_read(BIO *b, char *p, int n)
{
	int r = (int)recv((int)(intptr_t)BIO_get_data(b), p, (size_t)n, MSG_DONTWAIT);

	BIO_clear_retry_flags(b);
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return r;
}

static long bio_ctrl(BIO *b, int cmd, long n, void *p)
{
	(void)b;
	(void)n;
	(void)p;
	return cmd == BIO_CTRL_FLUSH;
}

/* One for the process; it is never freed. */
static BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *method;

	if (method)
		return method;
	method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "socket");
	if (!method || !BIO_meth_set_write(method, bio_write) ||
	    !BIO_meth_set_read(method, bio_read) || !BIO_meth_set_ctrl(method, bio_ctrl)) {
		BIO_meth_free(method);
		method = NULL;
	}
	return method;
}

static int attach(struct tls_filter *t, int fd)
{
	BIO *b = BIO_new(bio_method());

	if (!b)
		return -ENOMEM;
	BIO_set_data(b, (void *)(intptr_t)fd);
	BIO_set_init(b, 1);
	SSL_set_bio(t->ssl, b, b);
	return 0;
}

/* --- calls --- */

/* What a failed call means: -EAGAIN with the wish of the library, or -errno. 0: the peer's end. */
static int outcome(struct tls_filter *t, int r, bool *wants_other, int other)
{
	int why = SSL_get_error(t->ssl, r);

	*wants_other = why == other;
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	t->broken = true;
	return -ECONNRESET;
}

static int tls_shake(struct http_filter *f, int fd)
{
	struct tls_filter *t = of(f);
	int r;

	if (!SSL_get_rbio(t->ssl)) {
		r = attach(t, fd);
		if (r < 0)
			return r;
	}
	ERR_clear_error();
	r = SSL_do_handshake(t->ssl);
	if (r == 1) {
		t->shaken = true;
		f->read_wants_write = false;
		return 0;
	}
	r = outcome(t, r, &f->read_wants_write, SSL_ERROR_WANT_WRITE);
	return r ? r : -ECONNRESET;
}

static ssize_t tls_read(struct http_filter *f, int fd, void *p, size_t n)
{
	struct tls_filter *t = of(f);
	size_t got = 0;

	(void)fd;
	ERR_clear_error();
	f->read_wants_write = false;
	if (SSL_read_ex(t->ssl, p, n, &got) == 1)
		return (ssize_t)got;
	return outcome(t, 0, &f->read_wants_write, SSL_ERROR_WANT_WRITE);
}

static ssize_t tls_write(struct http_filter *f, int fd, const void *p, size_t n)
{
	struct tls_filter *t = of(f);
	size_t sent = 0;
	int r;

	(void)fd;
	ERR_clear_error();
	f->write_wants_read = false;
	if (SSL_write_ex(t->ssl, p, n, &sent) == 1)
		return (ssize_t)sent;
	r = outcome(t, 0, &f->write_wants_read, SSL_ERROR_WANT_READ);
	return r ? r : -EPIPE;
}

static void tls_shut(struct http_filter *f, int fd)
{
	struct tls_filter *t = of(f);

	(void)fd;
	ERR_clear_error();
	if (t->shaken && !t->broken)
		(void)SSL_shutdown(t->ssl);
	ERR_clear_error();
}

static void tls_free(struct http_filter *f)
{
	struct tls_filter *t = of(f);

	/* A session that is freed without this could not be resumed. */
	if (t->shaken && !t->broken)
		SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(t->ssl);
	ERR_clear_error();
	free(t);
}

struct http_filter *http_tls_filter(SSL_CTX *ctx, SSL **ret_ssl)
{
	static const struct http_filter_ops ops = {
		.shake = tls_shake,
		.read = tls_read,
		.write = tls_write,
		.shut = tls_shut,
		.free = tls_free,
	};
	struct tls_filter *t = bio_method() ? calloc(1, sizeof *t) : NULL;

	if (!t)
		return NULL;
	t->f.ops = &ops;
	t->ssl = SSL_new(ctx);
	if (!t->ssl) {
		free(t);
		return NULL;
	}
	*ret_ssl = t->ssl;
	return &t->f;
}
