/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/net_options.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "cli/policy_load.h"
#include "wire/frame.h"
#include "wire/proto.h"
#include "wire/proxy.h"

enum { RESOLV_CONF_MOST = 64 * 1024, SERVERS_MOST = 4 };

static const char *const proxies[] = { "CAY_PROXY", "HTTPS_PROXY", "https_proxy",
				       "ALL_PROXY", "all_proxy",   NULL };

static const char *first_env(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return value;
	}
	return NULL;
}

/* What the gateway could not make sense of is said here, where somebody reads it. */
static int check_host(struct err *e)
{
	const char *servers = getenv("CAY_NAMESERVERS"), *url = first_env(proxies);
	struct proxy p;

	if (url && strcmp(url, "none") != 0 && proxy_parse(str_of(url), &p) < 0) {
		(void)err_set(e, ERR_INVALID, "the proxy '%s' of the environment cannot be used",
			      strchr(url, '@') ? strrchr(url, '@') + 1 : url);
		return err_hint(e, "http:// and socks5://[user:password@]host:port can; "
				   "CAY_PROXY=none: without one");
	}
	for (const char *at = servers; at && *(at += strspn(at, ", "));) {
		struct str one = { at, strcspn(at, ", ") };
		struct host h;
		uint16_t port;

		if (ip_parse(one, &h.ip) < 0 && (authority_parse(one, &h, &port) < 0 || !h.ip.len))
			return err_set(e, ERR_INVALID, "CAY_NAMESERVERS: '%.*s' is not an address",
				       (int)one.n, one.p);
		at += one.n;
	}
	return 0;
}

int net_opts_resolve(const struct net_opts *n, struct buf *ret_policy, struct err *e)
{
	struct policy_source s = { .net = n->net, .allow = &n->allow, .deny = &n->deny };

	if (!n->allow.n && (!n->net || strcmp(n->net, "none") == 0)) {
		if (n->deny.n)
			return err_set(e, ERR_INVALID,
				       "--deny without --net or --allow: there is no "
				       "network that it could be kept from");
		return 0;
	}
	return check_host(e) < 0 ? -1 : policy_load(&s, ret_policy, NULL, e);
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

/* "nameserver ADDRESS" at the start of a line; without any it is the host itself. */
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
		line[strcspn(line, " \t\r%#;")] = '\0'; /* a zone is of no use to others */
		if (buf_printf(&list, "%s ", line) < 0)
			break;
	}
	return list.len ? put_servers(b, list.data, " ") : put_servers(b, "127.0.0.1", " ");
}

int net_opts_put_build(const struct buf *policy, struct buf *b)
{
	return policy->len ? field_put(b, TAG_NET_POLICY, buf_str(policy)) : 0;
}

static bool has_network(struct str recipe)
{
	struct field f;

	while (field_next(&recipe, &f) > 0)
		if (f.tag == TAG_NET_POLICY)
			return true;
	return false;
}

static int put_host(struct buf *b)
{
	static const char *const excepts[] = { "NO_PROXY", "no_proxy", NULL };
	const char *servers = getenv("CAY_NAMESERVERS"), *proxy = first_env(proxies);
	const char *except = first_env(excepts);
	int r = servers && *servers ? put_servers(b, servers, ", ") : put_resolv_conf(b);

	if (r == 0 && proxy && strcmp(proxy, "none") != 0)
		r = field_put_c(b, TAG_PROXY, proxy);
	if (r == 0 && proxy && except)
		r = field_put_c(b, TAG_NO_PROXY, except);
	return r;
}

int net_opts_put_host(struct str recipe, struct buf *b, struct err *e)
{
	int r;

	if (!has_network(recipe))
		return 0;
	if (check_host(e) < 0)
		return -1;
	r = put_host(b);
	return r < 0 ? err_sys(e, -r, "tell the warden how to reach the world") : 0;
}

static void put_list(struct out_json *j, const char *key, const struct opt_list *l)
{
	if (!l->n)
		return;
	out_json_open(j, key, '[');
	for (int i = 0; i < l->n; i++)
		out_json_c(j, NULL, l->items[i]);
	out_json_close(j, ']');
}

void net_opts_spec(const struct net_opts *n, struct out_json *j)
{
	if (n->net)
		out_json_c(j, "net", n->net);
	put_list(j, "allow", &n->allow);
	put_list(j, "deny", &n->deny);
}
