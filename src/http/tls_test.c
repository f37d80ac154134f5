/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "http/client.h"
#include "http/fixture.h"

enum { PEM_MOST = 8192 };

/* A self-signed certificate and its key, in PEM. */
struct made {
	char chain[PEM_MOST], key[PEM_MOST];
};

static void pem_of(BIO *b, char out[PEM_MOST])
{
	int n = BIO_read(b, out, PEM_MOST - 1);

	CHECK(n > 0);
	out[n] = '\0';
	BIO_free(b);
}

static void make_cert(const char *names, struct made *ret)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	BIO *chain = BIO_new(BIO_s_mem()), *text = BIO_new(BIO_s_mem());
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
	X509 *x = X509_new();

	CHECK(key && x && chain && text && ext);
	CHECK(ASN1_INTEGER_set(X509_get_serialNumber(x), 1));
	CHECK(X509_gmtime_adj(X509_getm_notBefore(x), 0) &&
	      X509_gmtime_adj(X509_getm_notAfter(x), 3600));
	CHECK(X509_set_version(x, 2) && X509_set_pubkey(x, key) && X509_add_ext(x, ext, -1));
	CHECK(X509_sign(x, key, EVP_sha256()));
	CHECK(PEM_write_bio_X509(chain, x));
	CHECK(PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL));
	pem_of(chain, ret->chain);
	pem_of(text, ret->key);
	X509_EXTENSION_free(ext);
	X509_free(x);
	EVP_PKEY_free(key);
}

static struct made made[3];
static struct http_tls *tls;
static SSL_CTX *client_ctx;

static struct http_tls_options options_of(struct http_tls_cert *certs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		certs[i] = (struct http_tls_cert){ str_of(made[i].chain), str_of(made[i].key) };
	return (struct http_tls_options){ .certs = certs, .n = n };
}

static void begin(void)
{
	struct http_tls_cert certs[2];
	struct http_tls_options o;
	struct err e;

	fix_begin();
	make_cert("DNS:a.test", &made[0]);
	make_cert("DNS:*.b.test", &made[1]);
	o = options_of(certs, 2);
	CHECK(http_tls_new(&tls, &o, &e) == 0);
	client_ctx = SSL_CTX_new(TLS_client_method());
	CHECK(client_ctx);
}

static void end(void)
{
	fix_end();
	http_tls_free(tls);
	SSL_CTX_free(client_ctx);
}

/* A client's connection, not yet shaken. */
static SSL *client_new(const char *name)
{
	SSL *ssl = SSL_new(client_ctx);
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(io_set_nonblock(fds[0], true) == 0);
	CHECK(http_server_adopt(&fix_server, fds[1], http_tls_maker(tls)) == 0);
	CHECK(ssl && SSL_set_fd(ssl, fds[0]) && SSL_set_tlsext_host_name(ssl, name));
	return ssl;
}

static bool client_shake(SSL *ssl)
{
	for (int i = 0; i < 20; i++) {
		int r = SSL_connect(ssl), why = SSL_get_error(ssl, r);

		if (r == 1)
			return true;
		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
			return false;
		fix_turn();
	}
	return false;
}

static void client_close(SSL *ssl)
{
	(void)SSL_shutdown(ssl); /* else its session could not be resumed */
	close(SSL_get_fd(ssl));
	SSL_free(ssl);
	ERR_clear_error();
	fix_turn();
}

/* Send a request: the answer as text. */
static const char *client_ask(SSL *ssl, const char *text)
{
	static char out[1 << 20];
	size_t n = 0;

	CHECK(SSL_write(ssl, text, (int)strlen(text)) == (int)strlen(text));
	for (int i = 0; i < 40; i++) {
		int r = SSL_read(ssl, out + n, (int)(sizeof out - 1 - n));

		n += r > 0 ? (size_t)r : 0;
		fix_turn();
	}
	out[n] = '\0';
	ERR_clear_error();
	return out;
}

static bool is_cert_for(SSL *ssl, const char *name)
{
	X509 *x = SSL_get1_peer_certificate(ssl);
	bool is = x && X509_check_host(x, name, 0, 0, NULL) == 1;

	X509_free(x);
	return is;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void requests_pass_through_tls(void)
{
	SSL *ssl;

	begin();
	ssl = client_new("a.test");
	CHECK(client_shake(ssl));
	for (int i = 0; i < 3; i++)
		CHECK_STR(fix_body(client_ask(ssl, GET("/hello"))), "hello");
	CHECK(fix_server.counters.idle == 1);
	CHECK_STR(fix_body(client_ask(ssl, "POST /echo HTTP/1.1\r\nHost: a\r\n"
					   "Transfer-Encoding: chunked\r\n\r\n"
					   "3\r\nabc\r\n0\r\n\r\n")),
		  "abc");
	client_close(ssl);
	CHECK(fix_server.counters.conns == 0);
	end();
}

static void large_bodies_pass_both_ways(void)
{
	static char post[60000 + 128];
	const char *body;
	SSL *ssl;
	int n = snprintf(post, 128,
			 "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n");

	memset(post + n, 'x', 60000);
	post[n + 60000] = '\0';
	begin();
	ssl = client_new("a.test");
	CHECK(client_shake(ssl));
	body = fix_body(client_ask(ssl, post));
	CHECK(strlen(body) == 60000);
	client_close(ssl);
	end();
}

static void the_certificate_follows_the_name(void)
{
	static const struct {
		const char *asked, *got;
	} rows[] = {
		{ "a.test", "a.test" },
		{ "x.b.test", "y.b.test" },
		{ "other.test", "a.test" }, /* the first */
		{ "x.y.b.test", "a.test" },
	};

	begin();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		SSL *ssl = client_new(rows[i].asked);

		CHECK(client_shake(ssl) && is_cert_for(ssl, rows[i].got));
		client_close(ssl);
	}
	end();
}

static void only_http_1_1_is_negotiated(void)
{
	const unsigned char *proto;
	unsigned n;
	SSL *ssl;

	begin();
	ssl = client_new("a.test");
	CHECK(SSL_set_alpn_protos(ssl, (const unsigned char *)"\2h2\x08http/1.1", 12) == 0);
	CHECK(client_shake(ssl));
	SSL_get0_alpn_selected(ssl, &proto, &n);
	CHECK(n == 8 && memcmp(proto, "http/1.1", 8) == 0);
	client_close(ssl);
	ssl = client_new("a.test");
	CHECK(SSL_set_alpn_protos(ssl, (const unsigned char *)"\2h2", 3) == 0);
	CHECK(!client_shake(ssl));
	client_close(ssl);
	ssl = client_new("a.test");
	CHECK(SSL_set_max_proto_version(ssl, TLS1_1_VERSION));
	CHECK(!client_shake(ssl));
	client_close(ssl);
	end();
}

static void new_certificates_leave_old_connections_alone(void)
{
	struct http_tls_cert certs[3];
	struct http_tls_options o;
	SSL *old, *fresh;
	struct err e;

	begin();
	old = client_new("a.test");
	CHECK(client_shake(old));
	make_cert("DNS:c.test", &made[0]);
	o = options_of(certs, 1);
	CHECK(http_tls_replace(tls, &o, &e) == 0);
	fresh = client_new("a.test");
	CHECK(client_shake(fresh) && is_cert_for(fresh, "c.test"));
	CHECK_STR(fix_body(client_ask(old, GET("/hello"))), "hello");
	/* A key of another certificate: the set stays. */
	certs[0].key = str_of(made[1].key);
	CHECK(http_tls_replace(tls, &o, &e) == -1 && e.kind == ERR_INVALID);
	certs[0].chain = STR("nonsense");
	CHECK(http_tls_replace(tls, &o, &e) == -1);
	o.n = 0;
	CHECK(http_tls_replace(tls, &o, &e) == -1);
	client_close(fresh);
	fresh = client_new("a.test");
	CHECK(client_shake(fresh) && is_cert_for(fresh, "c.test"));
	client_close(fresh);
	client_close(old);
	end();
}

static SSL_SESSION *session;

static int on_session(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	SSL_SESSION_free(session);
	session = s;
	return 1;
}

static void sessions_outlive_a_change_of_certificates(void)
{
	struct http_tls_cert certs[2];
	struct http_tls_options o;
	SSL *ssl;
	struct err e;

	begin();
	(void)SSL_CTX_set_session_cache_mode(client_ctx,
					     SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(client_ctx, on_session);
	ssl = client_new("a.test");
	CHECK(client_shake(ssl));
	(void)client_ask(ssl, GET("/hello"));
	CHECK(session && !SSL_session_reused(ssl));
	client_close(ssl);
	o = options_of(certs, 2);
	CHECK(http_tls_replace(tls, &o, &e) == 0);
	ssl = client_new("a.test");
	CHECK(SSL_set_session(ssl, session) && client_shake(ssl) && SSL_session_reused(ssl));
	client_close(ssl);
	SSL_SESSION_free(session);
	end();
}

static void a_client_that_does_not_shake_hands_is_dropped(void)
{
	int fds[2];

	begin();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(http_server_adopt(&fix_server, fds[1], http_tls_maker(tls)) == 0);
	fix_turn();
	CHECK(fix_server.counters.conns == 1);
	fix_wait(10 * 1000 + 1);
	CHECK(fix_server.counters.conns == 0);
	close(fds[0]);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK(http_server_adopt(&fix_server, fds[1], http_tls_maker(tls)) == 0);
	CHECK(io_set_nonblock(fds[0], true) == 0);
	fix_send(fds[0], GET("/hello")); /* plain text */
	CHECK(fix_server.counters.conns == 0);
	close(fds[0]);
	end();
}

static void many_handshakes_at_once_all_succeed(void)
{
	SSL *ssl[30];
	unsigned done = 0;

	begin();
	for (size_t i = 0; i < ARRAY_LEN(ssl); i++)
		ssl[i] = client_new("a.test");
	for (int round = 0; round < 40 && done < ARRAY_LEN(ssl); round++) {
		done = 0;
		for (size_t i = 0; i < ARRAY_LEN(ssl); i++)
			done += SSL_connect(ssl[i]) == 1;
		fix_turn();
	}
	CHECK(done == ARRAY_LEN(ssl));
	for (size_t i = 0; i < ARRAY_LEN(ssl); i++)
		client_close(ssl[i]);
	end();
}

/* A server in a process of its own, for one connection: our end of it. */
static int serve_apart(pid_t *ret_pid)
{
	int fds[2];
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		fix_begin(); /* with a loop of its own */
		CHECK(http_server_adopt(&fix_server, fds[1], http_tls_maker(tls)) == 0);
		while (fix_server.counters.conns)
			fix_turn();
		_exit(0); /* what the parent has is no leak here */
	}
	close(fds[1]);
	*ret_pid = pid;
	return fds[0];
}

static int ask_server(const struct http_tls_roots *roots, const char *host, struct buf *body)
{
	struct http_client c;
	struct http_filter *f = http_tls_client(roots, host);
	int r, status;
	pid_t pid;

	CHECK(f);
	r = http_client_init(&c, serve_apart(&pid), f, 0);
	if (r == 0) {
		CHECK(http_client_ask(&c, STR("GET"), STR("a.test"), STR("/hello"), NULL, 0,
				      STR("")) == 0);
		CHECK(http_client_read_all(&c, body) == 0);
		http_client_done(&c);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return r;
}

static void our_client_talks_only_to_the_server_that_it_means(void)
{
	auto_done(buf_done) struct buf body = BUF_INIT(100);
	struct http_tls_roots *roots, *others;
	char dir[64], file[80];
	struct err e;

	begin();
	t_scratch(dir, sizeof dir);
	(void)snprintf(file, sizeof file, "%s/ca", dir);
	CHECK(io_replace_file(AT_FDCWD, file, file, str_of(made[0].chain)) == 0);
	CHECK(http_tls_roots_new(&roots, file, &e) == 0);
	CHECK(ask_server(roots, "a.test", &body) == 0 && str_is(buf_str(&body), "hello"));
	CHECK(ask_server(roots, "c.test", &body) == -ECONNRESET);
	CHECK(ask_server(roots, "127.0.0.1", &body) == -ECONNRESET);
	/* A root that did not sign it. */
	CHECK(io_replace_file(AT_FDCWD, file, file, str_of(made[1].chain)) == 0);
	CHECK(http_tls_roots_new(&others, file, &e) == 0);
	CHECK(ask_server(others, "a.test", &body) == -ECONNRESET);
	http_tls_roots_free(others);
	CHECK(io_replace_file(AT_FDCWD, file, file, STR("nonsense")) == 0);
	CHECK(http_tls_roots_new(&others, file, &e) == -1 && e.kind == ERR_INVALID);
	CHECK(!http_tls_client(roots, ""));
	http_tls_roots_free(roots);
	CHECK(unlink(file) == 0 && rmdir(dir) == 0);
	end();
}

T_MAIN(T(requests_pass_through_tls), T(large_bodies_pass_both_ways),
       T(the_certificate_follows_the_name), T(only_http_1_1_is_negotiated),
       T(new_certificates_leave_old_connections_alone),
       T(sessions_outlive_a_change_of_certificates),
       T(a_client_that_does_not_shake_hands_is_dropped), T(many_handshakes_at_once_all_succeed),
       T(our_client_talks_only_to_the_server_that_it_means))
