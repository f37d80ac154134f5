/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "http/tls.h"
#include "http/tls_ctx.h"
#include "wire/ip.h"

struct http_tls_roots {
	SSL_CTX *ctx;
};

static bool load(SSL_CTX *ctx, const char *file)
{
	bool ok = file ? SSL_CTX_load_verify_file(ctx, file) == 1
		       : SSL_CTX_set_default_verify_paths(ctx) == 1;

	ERR_clear_error();
	return ok;
}

int http_tls_roots_new(struct http_tls_roots **ret, const char *file, struct err *e)
{
	struct http_tls_roots *r = calloc(1, sizeof *r);

	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	if (r)
		r->ctx = SSL_CTX_new(TLS_client_method());
	if (!r || !r->ctx) {
		free(r);
		return err_sys(e, ENOMEM, "TLS");
	}
	(void)SSL_CTX_set_min_proto_version(r->ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_mode(r->ctx,
			       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(r->ctx, SSL_VERIFY_PEER, NULL);
	if (!load(r->ctx, file)) {
		http_tls_roots_free(r);
		return err_set(e, ERR_INVALID, "'%s' has no certificates in PEM",
			       file ? file : "the host's directory of certificates");
	}
	*ret = r;
	return 0;
}

void http_tls_roots_free(struct http_tls_roots *r)
{
	if (!r)
		return;
	SSL_CTX_free(r->ctx);
	free(r);
}

/* What the server's certificate must say. */
static bool demand(SSL *ssl, const char *host)
{
	static const unsigned char http[] = "\x08http/1.1";
	struct ip ip;

	/* Unlike others, this function returns 0 for success. */
	if (SSL_set_alpn_protos(ssl, http, sizeof http - 1) != 0)
		return false;
	if (ip_parse(str_of(host), &ip) == 0)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct http_filter *http_tls_client(const struct http_tls_roots *r, const char *host)
{
	SSL *ssl;
	struct http_filter *f = http_tls_filter(r->ctx, &ssl);

	if (!f)
		return NULL;
	SSL_set_connect_state(ssl);
	if (host[0] == '\0' || !demand(ssl, host)) {
		f->ops->free(f);
		return NULL;
	}
	return f;
}
