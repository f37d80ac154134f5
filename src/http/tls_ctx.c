/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates: one context each, chosen by the name that the client asks for (SNI). A set is built
 * completely before it replaces the old one. OpenSSL counts references, so contexts live as long as
 * their connections.
 */
#include "http/tls_ctx.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "http/tls.h"

struct tls_set {
	size_t n;
	SSL_CTX *ctx[HTTP_TLS_CERTS];
};

struct http_tls {
	struct http_filter_maker maker; /* first */
	struct tls_set set;
	unsigned char ticket[HTTP_TLS_TICKET];
};

/* --- PEM --- */

static BIO *bio_of(struct str text)
{
	return BIO_new_mem_buf(text.p, (int)text.n);
}

/* The leaf and its chain into ctx. False if there is none, or one is malformed. */
static bool use_chain(SSL_CTX *ctx, struct str text)
{
	BIO *b = bio_of(text);
	X509 *leaf = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL, *ca;
	bool ok = leaf && SSL_CTX_use_certificate(ctx, leaf) == 1;

	while (ok && (ca = PEM_read_bio_X509(b, NULL, NULL, NULL))) {
		ok = SSL_CTX_add0_chain_cert(ctx, ca) == 1;
		if (!ok)
			X509_free(ca);
	}
	X509_free(leaf);
	BIO_free(b);
	ERR_clear_error(); /* the end of the text counts as an error */
	return ok;
}

/* A key with a pass phrase is refused instead of asking for it. */
static int no_phrase(char *out, int size, int writing, void *user)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)user;
	return 0;
}

static bool use_key(SSL_CTX *ctx, struct str text)
{
	BIO *b = bio_of(text);
	EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, no_phrase, NULL) : NULL;
	bool ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;

	EVP_PKEY_free(key);
	BIO_free(b);
	ERR_clear_error();
	return ok;
}

bool http_tls_names(struct str chain, const char *name)
{
	BIO *b = bio_of(chain);
	X509 *leaf = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
	bool is = leaf && X509_check_host(leaf, name, 0, 0, NULL) == 1;

	X509_free(leaf);
	BIO_free(b);
	ERR_clear_error();
	return is;
}

/* --- contexts --- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
			   const unsigned char *in, unsigned in_n, void *user)
{
	static const unsigned char http[] = "\x08http/1.1";

	(void)ssl;
	(void)user;
	if (SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_n, http, sizeof http - 1,
				  in, in_n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

static bool is_for(SSL_CTX *ctx, const char *name)
{
	X509 *leaf = SSL_CTX_get0_certificate(ctx);

	return leaf && X509_check_host(leaf, name, 0, 0, NULL) == 1;
}

static int choose_cert(SSL *ssl, int *alert, void *user)
{
	struct http_tls *t = user;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	for (size_t i = 0; name && i < t->set.n; i++)
		if (is_for(t->set.ctx[i], name)) {
			(void)SSL_set_SSL_CTX(ssl, t->set.ctx[i]);
			break;
		}
	return SSL_TLSEXT_ERR_OK;
}

static void configure(SSL_CTX *ctx, struct http_tls *t)
{
	static const unsigned char id[] = "cay";

	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					    SSL_MODE_RELEASE_BUFFERS);
	/* Sessions live in tickets: nothing is kept here. */
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
	(void)SSL_CTX_set_tlsext_ticket_keys(ctx, t->ticket, HTTP_TLS_TICKET);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	(void)SSL_CTX_set_tlsext_servername_callback(ctx, choose_cert);
	(void)SSL_CTX_set_tlsext_servername_arg(ctx, t);
}

static SSL_CTX *ctx_new(struct http_tls *t, const struct http_tls_cert *c, size_t i, struct err *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx) {
		(void)err_set(e, ERR_FAILED, "OpenSSL: no memory for a TLS context");
		return NULL;
	}
	configure(ctx, t);
	if (!use_chain(ctx, c->chain))
		(void)err_set(e, ERR_INVALID, "TLS certificate %zu is not a PEM chain", i + 1);
	else if (!use_key(ctx, c->key))
		(void)err_set(
			e, ERR_INVALID,
			"the key of TLS certificate %zu is not a PEM private key, or does not "
			"belong to the certificate",
			i + 1);
	else if (SSL_CTX_check_private_key(ctx) != 1)
		(void)err_set(e, ERR_INVALID,
			      "the key of TLS certificate %zu belongs to another one", i + 1);
	else
		return ctx;
	ERR_clear_error();
	SSL_CTX_free(ctx);
	return NULL;
}

static void set_done(struct tls_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		SSL_CTX_free(s->ctx[i]);
	s->n = 0;
}

int http_tls_replace(struct http_tls *t, const struct http_tls_options *o, struct err *e)
{
	struct tls_set set = { 0 };

	if (o->n == 0 || o->n > HTTP_TLS_CERTS)
		return err_set(e, ERR_INVALID,
			       "there are %zu TLS certificates; 1 to %d are allowed", o->n,
			       HTTP_TLS_CERTS);
	if (o->ticket)
		memcpy(t->ticket, o->ticket, sizeof t->ticket);
	while (set.n < o->n) {
		SSL_CTX *ctx = ctx_new(t, &o->certs[set.n], set.n, e);

		if (!ctx) {
			set_done(&set);
			return -1;
		}
		set.ctx[set.n++] = ctx;
	}
	set_done(&t->set);
	t->set = set;
	return 0;
}

static struct http_filter *make_filter(const struct http_filter_maker *m)
{
	const struct http_tls *t = container_of(m, const struct http_tls, maker);
	SSL *ssl;
	struct http_filter *f = http_tls_filter(t->set.ctx[0], &ssl);

	if (f)
		SSL_set_accept_state(ssl);
	return f;
}

int http_tls_new(struct http_tls **ret, const struct http_tls_options *o, struct err *e)
{
	struct http_tls *t = calloc(1, sizeof *t);
	int r;

	if (!t)
		return err_sys(e, ENOMEM, "TLS");
	/* The host's OpenSSL configuration is none of ours, and a jail may forbid to open it. */
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	t->maker.make = make_filter;
	r = random_bytes(t->ticket, sizeof t->ticket);
	r = r < 0 ? err_sys(e, -r, "random bytes for TLS tickets") : http_tls_replace(t, o, e);
	if (r < 0) {
		free(t);
		return -1;
	}
	*ret = t;
	return 0;
}

void http_tls_free(struct http_tls *t)
{
	if (!t)
		return;
	set_done(&t->set);
	OPENSSL_cleanse(t->ticket, sizeof t->ticket);
	free(t);
}

const struct http_filter_maker *http_tls_maker(const struct http_tls *t)
{
	return &t->maker;
}
