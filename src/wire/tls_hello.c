/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tls_hello.h"

#include <errno.h>

#include "base/limits.h"

enum {
	RECORD_HEAD = 5,
	RECORD_MAX = 16384,
	HANDSHAKE_HEAD = 4,
	TYPE_HANDSHAKE = 22,
	CLIENT_HELLO = 1,
	VERSION_MAJOR = 3,
	RANDOM = 32,
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_VERSIONS = 43,
	EXT_ECH = 0xfe0d,
	EXT_ESNI = 0xffce, /* the draft before ECH */
	EXT_MAX = 128,
};

/* A part of the message, read from the front. */
struct part {
	const uint8_t *p;
	size_t n;
};

static bool part_take(struct part *m, size_t n, struct part *ret)
{
	if (m->n < n)
		return false;
	*ret = (struct part){ m->p, n };
	m->p += n;
	m->n -= n;
	return true;
}

static bool take_u16(struct part *m, uint16_t *ret)
{
	struct part b;

	if (!part_take(m, 2, &b))
		return false;
	*ret = (uint16_t)(b.p[0] << 8 | b.p[1]);
	return true;
}

/* A vector with a length of `bytes` bytes (1 or 2). */
static bool take_vec(struct part *m, unsigned bytes, struct part *ret)
{
	struct part len;

	if (!part_take(m, bytes, &len))
		return false;
	return part_take(m, bytes == 1 ? len.p[0] : (size_t)(len.p[0] << 8 | len.p[1]), ret);
}

static int bad(struct tls_hello *h, const char *why)
{
	h->why = why;
	return -EBADMSG;
}

/* RFC 8701: 0x0a0a, 0x1a1a, ... */
static bool is_grease(uint16_t v)
{
	return (v & 0x0f0f) == 0x0a0a && v >> 8 == (v & 0xff);
}

static int read_server_name(struct part ext, struct tls_hello *h)
{
	struct part list, type, name;

	if (!take_vec(&ext, 2, &list) || ext.n || !part_take(&list, 1, &type) ||
	    !take_vec(&list, 2, &name) || list.n)
		return bad(h, "the server name is malformed, or there are several");
	if (type.p[0] != 0)
		return bad(h, "the server name is of an unknown type");
	if (host_name((struct str){ (const char *)name.p, name.n }, h->sni) < 0)
		return bad(h, "the server name is not a host name");
	/* RFC 6066 3: without the trailing dot. Servers treat a trailing dot differently. */
	if (name.p[name.n - 1] == '.')
		return bad(h, "the server name ends with a dot");
	h->has_sni = true;
	return 0;
}

static void add_alpn(struct tls_hello *h, size_t *n, struct part proto)
{
	if (*n + (*n > 0) + proto.n >= sizeof h->alpn)
		return;
	if (*n)
		h->alpn[(*n)++] = ',';
	for (size_t i = 0; i < proto.n; i++) {
		uint8_t c = proto.p[i];

		h->alpn[(*n)++] = c > ' ' && c < 0x7f && c != ',' ? (char)c : '?';
	}
	h->alpn[*n] = '\0';
}

static int read_alpn(struct part ext, struct tls_hello *h)
{
	struct part list, proto;
	size_t n = 0;

	if (!take_vec(&ext, 2, &list) || ext.n || list.n == 0)
		return bad(h, "the list of protocols is malformed");
	while (list.n) {
		if (!take_vec(&list, 1, &proto) || proto.n == 0)
			return bad(h, "the list of protocols is malformed");
		if (proto.n != 2 || !is_grease((uint16_t)(proto.p[0] << 8 | proto.p[1])))
			add_alpn(h, &n, proto);
	}
	return 0;
}

static int read_versions(struct part ext, struct tls_hello *h)
{
	uint16_t version, best = 0;
	struct part list;

	if (!take_vec(&ext, 1, &list) || ext.n || list.n == 0 || list.n % 2)
		return bad(h, "the list of versions is malformed");
	while (take_u16(&list, &version))
		if (!is_grease(version) && version > best && version >> 8 == VERSION_MAJOR)
			best = version;
	if (best)
		h->version = best;
	return 0;
}

static int read_extension(uint16_t type, struct part ext, struct tls_hello *h)
{
	switch (type) {
	case EXT_SERVER_NAME:
		return read_server_name(ext, h);
	case EXT_ALPN:
		return read_alpn(ext, h);
	case EXT_VERSIONS:
		return read_versions(ext, h);
	case EXT_ECH:
	case EXT_ESNI:
		h->ech = true;
		return 0;
	default:
		return 0;
	}
}

static int read_extensions(struct part list, struct tls_hello *h)
{
	uint16_t seen[EXT_MAX], type;
	struct part ext;
	size_t n = 0;

	while (list.n) {
		int r;

		if (!take_u16(&list, &type) || !take_vec(&list, 2, &ext))
			return bad(h, "an extension is truncated");
		if (n == EXT_MAX)
			return bad(h, "there are too many extensions");
		for (size_t i = 0; i < n; i++)
			if (seen[i] == type)
				return bad(h, "an extension is repeated");
		seen[n++] = type;
		r = read_extension(type, ext, h);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_hello(struct part m, struct tls_hello *h)
{
	struct part random, session, ciphers, compression, extensions;
	uint16_t version;

	if (!take_u16(&m, &version) || !part_take(&m, RANDOM, &random) ||
	    !take_vec(&m, 1, &session) || !take_vec(&m, 2, &ciphers) ||
	    !take_vec(&m, 1, &compression))
		return bad(h, "the hello is truncated");
	if (version >> 8 != VERSION_MAJOR || session.n > RANDOM || ciphers.n == 0 ||
	    ciphers.n % 2 || compression.n == 0)
		return bad(h, "the hello is malformed");
	h->version = version;
	if (m.n == 0)
		return 0; /* no extensions, as before TLS 1.2 */
	if (!take_vec(&m, 2, &extensions) || m.n)
		return bad(h, "the extensions have a wrong length");
	return read_extensions(extensions, h);
}

/* Take one record from the front of *in. 1, 0 for more, or an error. */
static int take_record(struct part *in, struct part *ret, struct tls_hello *h)
{
	size_t len;

	if (in->n > 0 && in->p[0] != TYPE_HANDSHAKE)
		return -EPROTO;
	if (in->n > 1 && in->p[1] != VERSION_MAJOR)
		return -EPROTO;
	if (in->n < RECORD_HEAD)
		return 0;
	len = (size_t)(in->p[3] << 8 | in->p[4]);
	if (len == 0 || len > RECORD_MAX)
		return bad(h, "a record has a wrong length");
	/* Wait until the record is complete. */
	if (in->n - RECORD_HEAD < len)
		return 0;
	*ret = (struct part){ in->p + RECORD_HEAD, len };
	in->p += RECORD_HEAD + len;
	in->n -= RECORD_HEAD + len;
	return 1;
}

/* Join the whole message, with its head, in out. 1, 0 for more, or an error. */
static int gather(struct part *in, uint8_t out[LIMIT_TLS_HELLO], size_t *ret_n, struct tls_hello *h)
{
	size_t n = 0, want = HANDSHAKE_HEAD;
	struct part record;
	int r;

	while (n < want) {
		r = take_record(in, &record, h);
		if (r <= 0)
			return r;
		if (record.n > LIMIT_TLS_HELLO - n)
			return -E2BIG;
		memcpy(out + n, record.p, record.n);
		n += record.n;
		if (out[0] != CLIENT_HELLO)
			return bad(h, "the first message is not a ClientHello");
		if (n < HANDSHAKE_HEAD)
			continue;
		want = HANDSHAKE_HEAD + ((size_t)out[1] << 16 | (size_t)out[2] << 8 | out[3]);
		if (want > LIMIT_TLS_HELLO)
			return -E2BIG;
	}
	if (n != want)
		return bad(h, "something follows the hello in its record");
	*ret_n = n;
	return 1;
}

int64_t tls_hello_parse(struct str in, struct tls_hello *ret)
{
	struct part rest = { (const uint8_t *)in.p, in.n };
	uint8_t message[LIMIT_TLS_HELLO];
	size_t n = 0;
	int r;

	memset(ret, 0, sizeof *ret);
	r = gather(&rest, message, &n, ret);
	if (r == -EPROTO && rest.n != in.n)
		r = bad(ret, "another record comes between the parts of the hello");
	if (r <= 0)
		return r;
	r = read_hello((struct part){ message + HANDSHAKE_HEAD, n - HANDSHAKE_HEAD }, ret);
	return r < 0 ? r : (int64_t)(in.n - rest.n);
}

const char *tls_version_text(uint16_t version)
{
	static const char *const names[] = { "SSL 3.0", "TLS 1.0", "TLS 1.1", "TLS 1.2",
					     "TLS 1.3" };

	if (version >> 8 != VERSION_MAJOR || (version & 0xff) >= sizeof names / sizeof names[0])
		return "TLS";
	return names[version & 0xff];
}
