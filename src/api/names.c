/* SPDX-License-Identifier: Apache-2.0 */
#include "api/names.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "wire/http_lines.h"

int names_add_domain(struct known_names *n, struct str text)
{
	if (n->ndomains == NAMES_MOST)
		return -ENOSPC;
	if (host_name(text, n->domains[n->ndomains]) < 0)
		return -EINVAL;
	n->ndomains++;
	return 0;
}

int names_add_origin(struct known_names *n, struct str text)
{
	if (n->norigins == NAMES_MOST)
		return -ENOSPC;
	if (origin_parse(text, &n->origins[n->norigins].host, &n->origins[n->norigins].port) < 0)
		return -EINVAL;
	n->norigins++;
	return 0;
}

/* The domain itself, or a name below it. */
static bool is_below(const char *name, const char *domain)
{
	size_t n = strlen(name), d = strlen(domain);

	if (n < d || strcmp(name + n - d, domain) != 0)
		return false;
	return n == d || name[n - d - 1] == '.';
}

bool names_have_domain(const struct known_names *n, const char *domain)
{
	for (int i = 0; i < n->ndomains; i++)
		if (strcasecmp(domain, n->domains[i]) == 0)
			return true;
	return n->ndomains == 0;
}

bool names_know_host(const struct known_names *n, const struct http_head *h, bool is_port)
{
	/* HTTP/1.0 without a Host: no browser. */
	if (!h->has_host || h->host.ip.len || is_below(h->host.name, "localhost"))
		return true;
	for (int i = 0; i < n->ndomains; i++)
		if (is_below(h->host.name, n->domains[i]))
			return true;
	return is_port && n->ndomains == 0;
}

/* Without a port in Host it is the usual one: 443 also if a proxy in front of us speaks TLS. */
static bool is_ours(const struct http_head *h, bool tls, const struct host *host, uint16_t port)
{
	bool same_port = h->port ? port == h->port : port == 443 || (port == 80 && !tls);

	return h->has_host && host_eq(&h->host, host) && same_port;
}

bool names_know_origin(const struct known_names *n, const struct http_head *h, bool tls)
{
	for (size_t i = 0; i < h->n; i++) {
		struct host host = { 0 };
		uint16_t port = 0;
		bool known;

		if (!http_name_is(h->headers[i].name, "origin"))
			continue;
		if (origin_parse(h->headers[i].value, &host, &port) < 0)
			return false;
		known = is_ours(h, tls, &host, port);
		for (int k = 0; k < n->norigins && !known; k++)
			known = host_eq(&host, &n->origins[k].host) && port == n->origins[k].port;
		if (!known)
			return false;
	}
	return true;
}
