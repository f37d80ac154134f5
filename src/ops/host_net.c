/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/host_net.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "wire/frame.h"
#include "wire/proto.h"
#include "wire/proxy.h"

enum { RESOLV_CONF_MOST = 64 * 1024, SERVERS_MOST = 4 };

static bool has_proxy(const struct host_net *n)
{
	return n->proxy && strcmp(n->proxy, "none") != 0;
}

/* Check here, where the user sees the error, what the gateway could not parse. */
int host_net_check(const struct host_net *n, struct err *e)
{
	struct proxy p;

	if (has_proxy(n) && proxy_parse(str_of(n->proxy), &p) < 0) {
		(void)err_set(e, ERR_INVALID, "the proxy '%s' of the environment cannot be used",
			      strchr(n->proxy, '@') ? strrchr(n->proxy, '@') + 1 : n->proxy);
		return err_code(e, "host.proxy", NULL);
	}
	for (const char *at = n->nameservers; at && *(at += strspn(at, ", "));) {
		struct str one = { at, strcspn(at, ", ") };
		struct host h;
		uint16_t port;

		if (ip_parse(one, &h.ip) < 0 &&
		    (authority_parse(one, &h, &port) < 0 || !h.ip.len)) {
			(void)err_set(e, ERR_INVALID, "'%.*s' is not an address", (int)one.n,
				      one.p);
			return err_field(e, "nameservers");
		}
		at += one.n;
	}
	return 0;
}

static int put_servers(struct buf *b, const char *text, const char *separators)
{
	int r = 0, n = 0;

	while (r == 0 && n < SERVERS_MOST && *(text += strspn(text, separators))) {
		size_t len = strcspn(text, separators);

		r = field_put(b, TAG_NAMESERVER, (struct str){ text, len });
		text += len;
		n++;
	}
	return r;
}

/* Reads "nameserver ADDRESS" lines. Without any, the host itself is the name server. */
static int put_resolv_conf(struct buf *b)
{
	static const char key[] = "nameserver";
	auto_done(buf_done) struct buf text = BUF_INIT(RESOLV_CONF_MOST), list = BUF_INIT(1024);
	char *line, *next;
	int r = io_read_file(AT_FDCWD, "/etc/resolv.conf", &text);

	for (line = r < 0 ? NULL : text.data; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strncmp(line, key, sizeof key - 1) != 0 ||
		    !isspace((unsigned char)line[sizeof key - 1]))
			continue;
		line += sizeof key;
		line += strspn(line, " \t");
		line[strcspn(line, " \t\r%#;")] =
			'\0'; /* drop the zone: it means nothing elsewhere */
		if (buf_printf(&list, "%s ", line) < 0)
			break;
	}
	return list.len ? put_servers(b, list.data, " ") : put_servers(b, "127.0.0.1", " ");
}

static bool has_network(struct str recipe)
{
	struct field f;

	while (field_next(&recipe, &f) > 0)
		if (f.tag == TAG_NET_POLICY)
			return true;
	return false;
}

static int put_host(const struct host_net *n, struct buf *b)
{
	int r = n->nameservers && *n->nameservers ? put_servers(b, n->nameservers, ", ")
						  : put_resolv_conf(b);

	if (r == 0 && has_proxy(n))
		r = field_put_c(b, TAG_PROXY, n->proxy);
	if (r == 0 && n->proxy && n->no_proxy)
		r = field_put_c(b, TAG_NO_PROXY, n->no_proxy);
	return r;
}

int host_net_put(const struct host_net *n, struct str recipe, struct buf *b, struct err *e)
{
	int r;

	if (!has_network(recipe))
		return 0;
	if (host_net_check(n, e) < 0)
		return -1;
	r = put_host(n, b);
	return r < 0 ? err_sys(e, -r, "tell the warden how to reach the world") : 0;
}
