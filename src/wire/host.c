/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/host.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
enum { LABEL_MAX = 63 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Lower case, or 0 for a byte that is not allowed in a name. */
static char name_byte(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '.' ? c : 0;
}

static bool label_ok(struct str label)
{
	return label.n >= 1 && label.n <= LABEL_MAX && label.p[0] != '-' &&
	       label.p[label.n - 1] != '-';
}

static bool labels_ok(struct str name)
{
	size_t start = 0;

	for (size_t i = 0; i <= name.n; i++) {
		if (i < name.n && name.p[i] != '.')
			continue;
		if (!label_ok((struct str){ name.p + start, i - start }))
			return false;
		start = i + 1;
	}
	return true;
}

/*
 * inet_aton() and the URL standard take a name for an IPv4 address when its last label is a
 * number: decimal, octal or hexadecimal, also "0x" alone.
 */
static bool ends_in_number(struct str name)
{
	size_t at = name.n, i;

	while (at > 0 && name.p[at - 1] != '.')
		at--;
	for (i = at; i < name.n && is_digit(name.p[i]); i++)
		;
	if (i == name.n)
		return true;
	if (name.n - at < 2 || name.p[at] != '0' || name.p[at + 1] != 'x')
		return false;
	for (i = at + 2; i < name.n && is_hex(name.p[i]); i++)
		;
	return i == name.n;
}

int host_name(struct str text, char out[HOST_TEXT])
{
	char name[HOST_TEXT];
	struct str clean = { name, text.n };

	out[0] = '\0';
	if (clean.n > 1 && text.p[clean.n - 1] == '.')
		clean.n--;
	if (clean.n == 0 || clean.n >= HOST_TEXT)
		return -EINVAL;
	for (size_t i = 0; i < clean.n; i++) {
		name[i] = name_byte(text.p[i]);
		if (!name[i])
			return -EINVAL;
	}
	if (!labels_ok(clean))
		return -EINVAL;
	if (ends_in_number(clean))
		return -EADDRNOTAVAIL;
	(void)str_copy(out, HOST_TEXT, clean);
	return 0;
}

int host_parse(struct str text, struct host *ret)
{
	struct host h = { 0 };
	int r;

	if (text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']') {
		r = ip_parse((struct str){ text.p + 1, text.n - 2 }, &h.ip);
		if (r == 0 && h.ip.len == 4)
			r = -EINVAL;
	} else {
		r = ip_parse(text, &h.ip);
		if (r < 0)
			r = host_name(text, h.name);
		else if (h.ip.len != 4)
			r = -EINVAL; /* without brackets it could mean host:port */
	}
	if (r == 0)
		*ret = h;
	return r;
}

int port_parse(struct str text, uint16_t *ret)
{
	unsigned n = 0;

	if (text.n == 0 || text.n > 5 || text.p[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < text.n; i++) {
		if (!is_digit(text.p[i]))
			return -EINVAL;
		n = n * 10 + (unsigned)(text.p[i] - '0');
	}
	if (n > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)n;
	return 0;
}

int authority_parse(struct str text, struct host *ret, uint16_t *ret_port)
{
	struct str host = text;
	uint16_t port = 0;
	size_t colon = 0;
	int r;

	if (text.n == 0)
		return -EINVAL;
	for (size_t i = text.n; i > 0 && !colon; i--) {
		if (text.p[i - 1] == ']')
			break;
		if (text.p[i - 1] == ':')
			colon = i;
	}
	if (colon) {
		host.n = colon - 1;
		r = port_parse((struct str){ text.p + colon, text.n - colon }, &port);
		if (r < 0)
			return r;
	}
	r = host_parse(host, ret);
	if (r == 0)
		*ret_port = port;
	return r;
}

int origin_parse(struct str text, struct host *ret, uint16_t *ret_port)
{
	static const struct str schemes[] = { { "http://", 7 }, { "https://", 8 } };
	static const uint16_t ports[] = { 80, 443 };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		int r;

		if (!str_starts(text, schemes[i]))
			continue;
		text = (struct str){ text.p + schemes[i].n, text.n - schemes[i].n };
		r = authority_parse(text, ret, ret_port);
		if (r == 0 && *ret_port == 0)
			*ret_port = ports[i];
		return r;
	}
	return -EINVAL;
}

bool host_eq(const struct host *a, const struct host *b)
{
	if (a->ip.len || b->ip.len)
		return ip_eq(&a->ip, &b->ip);
	return strcmp(a->name, b->name) == 0;
}

void host_text(const struct host *h, char out[HOST_TEXT])
{
	_Static_assert((int)IP_TEXT <= (int)HOST_TEXT, "an address fits where a name fits");
	if (h->ip.len)
		ip_text(&h->ip, out);
	else
		(void)str_copy(out, HOST_TEXT, str_of(h->name));
}

const char *host_why(int err)
{
	return err == -EADDRNOTAVAIL
		       ? "is an unusual spelling of an address, which programs read differently"
		       : "is not a host name";
}
